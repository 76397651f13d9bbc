package fetcharg

import "fmt"

// Version is that of a kernel.
type Version struct{ Major, Minor int }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Before reports whether v is older than o.
func (v Version) Before(o Version) bool {
	return v.Major < o.Major || v.Major == o.Major && v.Minor < o.Minor
}

// ParseVersion reads the version that a kernel's release, such as 6.12.9-amd64, begins with.
func ParseVersion(release string) (Version, error) {
	var v Version
	if _, err := fmt.Sscanf(release, "%d.%d", &v.Major, &v.Minor); err != nil {
		return Version{}, fmt.Errorf("read version of kernel release %q: %w", release, err)
	}
	return v, nil
}

// Need is something that not every kernel has.
type Need struct {
	Col   int    // of the argument or expression that needs it; 0 for the kind of probe
	Text  string // what it is
	Since Version
	Until Version // the first that has it no more; zero: there is none
}

// In reports whether kernels of the version have it. Distributions may have added it to older ones.
func (n Need) In(v Version) bool {
	return !v.Before(n.Since) && (n.Until == Version{} || v.Before(n.Until))
}

func (n Need) String() string {
	s := n.Text
	if n.Col > 0 {
		s = fmt.Sprintf("column %d: %s", n.Col, s)
	}
	if n.Until != (Version{}) {
		return fmt.Sprintf("%s: kernels before %v have it", s, n.Until)
	}
	return fmt.Sprintf("%s: kernels have it since %v", s, n.Since)
}

// Versions that brought something. $current, casts, this_cpu_… and what goes with them were seen in 7.3, not in 6.12.
var (
	v6_1  = Version{6, 1} // 6.2, and the stable releases of 6.1
	v6_3  = Version{6, 3}
	v6_5  = Version{6, 5}
	v6_6  = Version{6, 6}
	v6_9  = Version{6, 9}
	v6_10 = Version{6, 10}
	v6_12 = Version{6, 12}
	v7_0  = Version{7, 0}
	v7_3  = Version{7, 3}
)

// Needs returns what a probe of the kind with the arguments needs of the kernel beyond the language of 5.15. Names of
// parameters, and fields of structs, need also CONFIG_DEBUG_INFO_BTF.
func Needs(args []Arg, kind Kind) []Need {
	n := needs{kind: kind}
	n.add(0, kind.String()+" events ("+kind.Option()+")", kind.Since())
	for _, a := range args {
		n.argument(a)
		Walk(a.Expr, func(e Expr) bool {
			n.expr(e)
			return true
		})
	}
	return n.list
}

type needs struct {
	kind Kind
	list []Need
}

func (n *needs) add(at Pos, text string, since Version) {
	if (Version{5, 15}).Before(since) {
		n.list = append(n.list, Need{Col: int(at), Text: text, Since: since})
	}
}

func (n *needs) argument(a Arg) {
	if expandedLen(a) > oldMaxText {
		n.add(a.Pos, fmt.Sprintf("an argument of more than %d bytes", oldMaxText), v7_3)
	}
	if nested(a) > maxNested {
		text := fmt.Sprintf("more than %d dereferences inside each other", maxNested)
		n.list = append(n.list, Need{Col: int(a.Pos), Text: text, Until: v7_3})
	}
	switch a.Type.Base {
	case Char:
		n.add(a.TypePos, "type char", v6_3)
	case SymStr:
		n.add(a.TypePos, "type symstr", v6_1)
	case Dentry, File:
		n.add(a.TypePos, "type "+a.Type.String(), v6_10)
	case String, UString:
		if _, ok := (Arg{Name: a.Name, Expr: a.Expr}).Typed(n.kind); ok {
			n.add(a.TypePos, "text of a char pointer that BTF knows", v6_6)
		}
	}
}

func (n *needs) expr(e Expr) {
	at := Pos(e.Column())
	switch e := e.(type) {
	case Var:
		switch {
		case n.kind == Eprobe:
			n.add(at, "a field without $", v7_3)
		case n.kind.Return():
			n.add(at, "a parameter in a return probe", v6_9)
		default:
			n.add(at, "a parameter by its name", v6_5)
		}
	case AllParams:
		n.add(at, "$arg*", v6_5)
		if n.kind.Return() {
			n.add(at, "a parameter in a return probe", v6_9)
		}
	case Param:
		if n.kind.Return() {
			n.add(at, "a parameter in a return probe", v6_9)
		}
	case Member:
		n.add(at, "a field of a struct", v6_6)
	case Current:
		if n.kind != Eprobe {
			n.add(at, "$current", v7_3)
		}
	case Cast:
		n.add(at, "a cast", v7_3)
	case PerCPU:
		n.add(at, Text(PerCPU{Read: e.Read, Base: Var{Name: "…"}}), v7_3)
	}
}
