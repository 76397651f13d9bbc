package fetcharg

import "fmt"

// resolved is an argument whose name and type are known, if BTF has them.
type resolved struct {
	Arg
	name string
}

// resolve names the arguments as the kernel does, and puts the parameters in the place of $arg*.
func (c *compiler) resolve() []resolved {
	var list []resolved
	for _, a := range c.event.Args {
		c.arg = a
		switch e := a.Expr.(type) {
		case AllParams:
			list = append(list, c.allParams(e)...)
			continue
		case Param: // without a name, it is the parameter of that name where the kernel knows it
			if name := c.types.paramName(e.N); name != "" && a.Name == "" && !c.event.Kind.Return() {
				list = append(list, resolved{Arg{a.Pos, "", Var{e.Pos, name}, a.Type, a.TypePos}, name})
				continue
			}
		}
		list = append(list, resolved{a, c.name(a, len(list))})
	}
	return list
}

// name returns the name of the argument at i.
func (c *compiler) name(a Arg, i int) string {
	if a.Name != "" {
		return a.Name
	}
	if e, ok := a.Expr.(Var); ok {
		return e.Name
	}
	return fmt.Sprintf("arg%d", i+1)
}

// allParams returns the parameters that $arg* stands for.
func (c *compiler) allParams(e AllParams) []resolved {
	if c.event.Kind.Return() {
		c.unsupported(e.Pos, nil, "parameters are gone at the return: the kernel saves them at the entry")
		return nil
	}
	params, err := c.types.params()
	if err != nil {
		c.unsupported(e.Pos, err, "the parameters of %s are not known", c.event.Target)
		return nil
	}
	if len(params) == 0 {
		c.fail(e.Pos, Text(e), "%s has no parameters", c.event.Target)
	}
	var list []resolved
	for _, p := range params {
		list = append(list, resolved{Arg{Pos: e.Pos, Expr: Var{e.Pos, p.Name}}, p.Name})
	}
	return list
}

// lowerAll makes the fetches of the arguments.
func (c *compiler) lowerAll(list []resolved) {
	for _, r := range list {
		c.arg = r.Arg
		f := c.lower(r.Arg)
		if f == nil {
			continue
		}
		f.arg, f.name = r.Arg, r.name
		if size, _ := f.room(c.opt.MaxString); c.size+size > maxCompiled-MaxArgs/8 {
			c.unsupported(r.Pos, nil, "the record would be larger than %d bytes", maxCompiled)
			continue
		} else {
			c.size += size
		}
		c.list = append(c.list, f)
	}
}

// lower returns what is to be done for the argument, or nil if that cannot be done.
func (c *compiler) lower(a Arg) *fetch {
	t, m, ok := c.typeOf(a)
	if !ok {
		return nil
	}
	f := &fetch{typ: t}
	switch {
	case c.isTask(a.Expr) && t == Type{Base: String}:
		f.how = taskName
	case t.Base == String && isLiteral(a.Expr):
		if t.Len > 0 {
			c.unsupported(a.TypePos, nil, "there is no array of pointers to text")
			return nil
		}
		f.how, f.text = literal, a.Expr.(ImmString).Value
	case t.IsString():
		ok = c.lowerText(f, a)
	case t.Base == BitField:
		f.width, f.shift = t.Width, t.Shift
		ok = c.lowerNumber(f, a.Expr)
	default:
		if a.Type.Base == Default && m.bits > 0 {
			f.width, f.shift = m.bits, m.shift
		}
		ok = c.lowerNumber(f, a.Expr)
	}
	if !ok {
		return nil
	}
	return f
}

func isLiteral(e Expr) bool {
	_, ok := e.(ImmString)
	return ok
}

// isTask reports whether the expression is the task's name, and not a field of that name.
func (c *compiler) isTask(e Expr) bool {
	if c.event.Kind == Eprobe {
		return task(c.opt.Format, e)
	}
	_, ok := e.(Comm)
	return ok
}

// typeOf returns the type that the argument has, and what BTF tells of it.
func (c *compiler) typeOf(a Arg) (Type, typed, bool) {
	t, fromBTF := a.Typed(c.event.Kind)
	var m typed
	if fromBTF || isMember(a.Expr) {
		var ok bool
		if m, ok = c.typed(a.Expr); !ok {
			return t, m, false
		}
	}
	if fromBTF && m.typ != nil {
		t = Type{Base: baseOf(m.typ)}
	}
	return t, m, true
}

func isMember(e Expr) bool {
	_, ok := e.(Member)
	return ok
}

// lowerNumber sets what a number is, or the numbers of an array.
func (c *compiler) lowerNumber(f *fetch, e Expr) bool {
	if in, off, user, ok := c.memory(e); ok {
		f.how, f.node, f.off, f.user = readMemory, in, off, user
		return in != nil
	}
	f.how, f.node = storeValue, c.value(e)
	if f.node != nil && f.node.op == dereferred { // a word of the stack, which is memory all the same
		f.how, f.node, f.off, f.user = readMemory, f.node.in, f.node.off, f.node.user
	}
	return f.node != nil && !(f.how == storeValue && c.isCopied(f.node, e))
}

// isCopied refuses the address of text in the event's record: each engine has a record of its own.
func (c *compiler) isCopied(n *node, e Expr) bool {
	if n.inContext() {
		c.unsupported(Pos(e.Column()), nil, "the address of text in the event's record is that of a copy: fetch the text, as string or by +0(%s)", Text(e))
	}
	return n.inContext()
}

// lowerText sets where text is.
func (c *compiler) lowerText(f *fetch, a Arg) bool {
	user := f.typ.Base == UString
	switch f.typ.Base {
	case SymStr:
		f.how, f.node = symbolText, c.value(a.Expr)
		return f.node != nil && !c.isCopied(f.node, a.Expr)
	case Dentry, File:
		return c.lowerPath(f, a)
	}
	if c.isTask(a.Expr) || isLiteral(a.Expr) {
		c.unsupported(a.TypePos, nil, "the text is not one of the process, and there is no array of it")
		return false
	}
	in, off, pointerUser, ok := c.textMemory(a)
	if !ok {
		return false
	}
	f.how, f.node, f.off, f.user = readText, in, off, user || pointerUser
	if f.typ.Len > 0 {
		if !isMemory(a.Expr) && !isUserMemory(a.Expr) {
			c.unsupported(a.TypePos, nil, "there is no array of pointers to text: expected memory, as of a dereference +0(%s)", Text(a.Expr))
			return false
		}
		f.how, f.user, f.utext = readTexts, pointerUser, user
	}
	return true
}

// lowerPath sets what %pd and %pD stand for: +0(+d_name.name(X)) and +0(+d_name.name(+f_path.dentry(X))).
func (c *compiler) lowerPath(f *fetch, a Arg) bool {
	n := c.value(a.Expr)
	if n == nil {
		return false
	}
	if f.typ.Base == File {
		off, err := c.types.offsetOf("file", "f_path", "dentry")
		if err != nil {
			c.unsupported(a.TypePos, err, "struct file is not known")
			return false
		}
		n = c.deref(n, off, false)
	}
	off, err := c.types.offsetOf("dentry", "d_name", "name")
	if err != nil {
		c.unsupported(a.TypePos, err, "struct dentry is not known")
		return false
	}
	f.how, f.node = readText, c.deref(n, off, false)
	return true
}
