package fetcharg

import (
	"slices"

	"github.com/cilium/ebpf/asm"
)

// nodeOp is a way to have a number of 64 bits.
type nodeOp uint8

const (
	constant       nodeOp = iota // off
	fromContext                  // what the program's context has at off, size bytes of it
	contextAddress               // the address of the context, + off
	contextText                  // the same, + the lower half of the 32 bits at off; signed: from behind these
	currentTask
	cpuOffset  // of this CPU's copy of per-CPU variables
	perCPU     // in + cpuOffset
	stackWord  // what the kernel's stack has off bytes from its pointer; 0 outside of the stack
	dereferred // what is in memory at in + off
)

// node is a number that the program has to get. Equal ones are the same node.
type node struct {
	nodeKey
	uses int   // by other nodes and by fetches
	args []int // indexes of the fetches that need it, in order

	// The program's own:
	slot  int16 // where it is kept on the stack, below the frame pointer, once it is known; 0: it is not kept
	temp  int16 // where it is for the next instructions
	ready bool  // it is in slot
}

type nodeKey struct {
	op     nodeOp
	in     *node
	off    int64
	size   asm.Size
	signed bool
	user   bool // memory of the process
}

// node returns the node of the key.
func (c *compiler) node(key nodeKey) *node {
	n := c.nodes[key]
	if n == nil {
		n = &node{nodeKey: key}
		c.nodes[key] = n
	}
	return n
}

func (c *compiler) constant(n int64) *node { return c.node(nodeKey{op: constant, off: n}) }

func (c *compiler) deref(in *node, off int64, user bool) *node {
	return c.node(nodeKey{op: dereferred, in: in, off: off, size: asm.DWord, user: user})
}

// remembered reports whether getting the number again would cost more than keeping it.
func (n *node) remembered() bool { return n.op >= currentTask && n.op != perCPU }

// inContext reports whether the number is an address in the program's context.
func (n *node) inContext() bool { return n.op == contextAddress || n.op == contextText }

// chain returns the nodes that n is made of, with itself, the innermost first.
func (n *node) chain() []*node {
	var all []*node
	for ; n != nil; n = n.in {
		all = append(all, n)
	}
	slices.Reverse(all)
	return all
}

// how is what is done with a node.
type how uint8

const (
	storeValue how = iota // it is stored
	readMemory            // what is in memory at it is stored: elements of an array at once
	readText              // a text in memory at it is stored
	readTexts             // the same for an array of pointers in memory at it
	taskName
	literal
	symbolText // its text as the address of a symbol is stored
)

// fetch is what the program does for one argument.
type fetch struct {
	arg   Arg
	name  string
	typ   Type // not the default one
	how   how
	node  *node
	off   int64 // bytes from the node to the memory that is read
	user  bool  // the memory is the process's
	utext bool  // of an array's texts; user is then of its pointers
	width int   // bits of a bit field, 0 if it is none
	shift int   // of its lowest bit
	text  string
}

// elements returns how many values there are.
func (f *fetch) elements() int { return max(f.typ.Len, 1) }

// share finds out which numbers more than one argument needs. A fetch of 8 bytes of memory that another argument goes on
// from is a use of that number.
func (c *compiler) share() {
	for _, f := range c.list {
		c.use(f.node)
		if f.how == readTexts {
			c.use(f.node) // once for each element
		}
	}
	for i, f := range c.list {
		key := nodeKey{op: dereferred, in: f.node, off: f.off, size: asm.DWord, user: f.user}
		if n := c.nodes[key]; n != nil && n.uses > 0 && f.how == readMemory && f.typ.Len == 0 && f.typ.ElemSize() == 8 {
			f.how, f.node, f.off, f.user = storeValue, n, 0, false
			n.uses++
		}
		if f.node == nil {
			continue
		}
		for _, n := range f.node.chain() {
			n.need(i)
			if n.op == perCPU {
				c.node(nodeKey{op: cpuOffset}).need(i)
			}
		}
	}
}

// use counts a use of the number, and with the first those of what it is made of.
func (c *compiler) use(n *node) {
	for ; n != nil; n = n.in {
		if n.uses++; n.uses > 1 {
			return
		}
		if n.op == perCPU {
			c.node(nodeKey{op: cpuOffset}).uses++
		}
	}
}

func (n *node) need(fetch int) {
	if !slices.Contains(n.args, fetch) {
		n.args = append(n.args, fetch)
	}
}
