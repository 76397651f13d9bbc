package fetcharg

// difference is a list of the corpus on which the package and some kernels do not agree.
type difference struct {
	kinds       []Kind
	lists       []string // as in the corpus
	since, from Version  // the kernels it holds for: since (included) to from (not included); zero for all
	reason      string
}

var (
	entries  = []Kind{Kprobe, Fprobe, Tprobe}
	returns  = []Kind{Kretprobe, FprobeReturn}
	lexed    = []Kind{Kprobe, Eprobe, Uprobe} // of the corpus's first part
	ftraced  = []Kind{Fprobe, FprobeReturn, Tprobe}
	ofUser   = []Kind{Uprobe, Uretprobe}
	noEvents = []Kind{Kprobe, Kretprobe, Fprobe, FprobeReturn, Tprobe, Uprobe, Uretprobe}
)

// differences are all that there are. Where the package is stricter, that is meant: the kernel silently does something else
// than what was written. Where it is laxer, the kernel knows something that the package does not.
var differences = []difference{
	// Stricter.
	{lexed, []string{`a=+0(@0)junk`}, Version{}, Version{}, "text after a closing parenthesis is ignored"},
	{[]Kind{Kprobe, Kretprobe, Fprobe, FprobeReturn, Tprobe}, []string{`a=this_cpu_ptr(@0)junk`}, v7_3, Version{}, "text after a closing parenthesis is ignored"},
	{entries, []string{`+0(FILE)->FIELD`}, v6_5, Version{}, "text after a closing parenthesis is ignored"},
	{returns, []string{`+0(FILE)->FIELD`}, v6_9, Version{}, "text after a closing parenthesis is ignored"},
	{lexed, []string{`a=+2147483648(@0)`, `a=-2147483649(@0)`}, Version{}, Version{}, "offsets are cut to 32 bits"},
	{lexed, []string{`a=@0:b4@18446744073709551615/8`}, Version{}, Version{}, "the sum of width and shift overflows"},
	{lexed, []string{`a=\1 # b`}, Version{}, Version{}, "the rest of the line is a comment"},
	{lexed, []string{"\xe9=\\1"}, Version{}, Version{}, "names may have letters of Latin-1, which is no UTF-8"},
	{entries, []string{`$arg*:u8`, `$arg*x`}, v6_5, Version{}, "text after $arg* is ignored"},
	{returns, []string{`$arg*:u8`, `$arg*x`}, v6_9, Version{}, "text after $arg* is ignored"},
	{entries, []string{`a=$arg+1`, `a=$arg01`}, Version{}, Version{}, "an eprobe's field may have such a name, so it cannot be written as $arg1"},
	{returns, []string{`a=$arg+1`, `a=$arg01`}, v6_9, Version{}, "an eprobe's field may have such a name, so it cannot be written as $arg1"},
	{noEvents, []string{`$stack007`}, Version{}, Version{}, "an eprobe's field may have such a name, so it cannot be written as $stack7"},
	{ofUser, []string{`$stack4294967296`}, Version{}, Version{}, "numbers are cut to 32 bits"},
	{[]Kind{Fprobe}, []string{`$retval`, `a=$retval:u32`, `a=$retval:symstr`}, v6_5, Version{}, "it makes it a probe at the return"},
	{[]Kind{Uretprobe}, []string{`$retval->x`, `$retvalx`}, v6_6, Version{}, "text after $retval is ignored"},
	{lexed, []string{many(129, `\0:u8`)}, Version{}, Version{6, 12}, "arguments after the 128th are left out"},
	{[]Kind{Eprobe}, []string{`$prev_pid if prev_pid==1`}, Version{}, Version{}, "a filter is none of the arguments"},

	// Laxer: what BTF and the table of symbols have.
	{entries, []string{`$arg9`, `nosuch`, `a=FILE:string`}, v6_5, Version{}, "the function is not known"},
	{returns, []string{`$arg9`, `nosuch`, `a=FILE:string`}, v6_9, Version{}, "the function is not known"},
	{entries, []string{`FILE->nosuch`}, v6_6, Version{}, "the struct is not known"},
	{returns, []string{`FILE->nosuch`}, v6_9, Version{}, "the struct is not known"},
	{returns, []string{`$retval->x`}, v6_6, Version{}, "what is returned is not known"},
	{append(entries, returns...), []string{`(nosuch)FILE->FIELD`}, v7_3, Version{}, "the struct is not known"},
	{[]Kind{Kprobe, Kretprobe, Fprobe, FprobeReturn}, []string{`(STRUCT)FILE->FIELD->FIELD`}, v7_3, Version{}, "the struct is not known"},

	// Kernels that take more.
	{ftraced, []string{`@`, `@-5`, `@jiffies*8`, `@jiffies++8`, `@jiffies+-8`, `@jiffies+8+8`, `@jiffies+`, `@jiffies+9223372036854775808`}, v7_3, Version{}, "symbols are looked up when the event is enabled"},
	{[]Kind{Eprobe}, []string{`+0($COMM)`, `a=+0($comm):string`, `a=$COMM:symstr`, `a=$comm:symstr`}, Version{}, v6_3, "the task's name could be taken as an address"},
	{ofUser, []string{`a=$stack0:symstr`, `a=%di:symbol`, `a=%di:symstr`}, Version{}, v6_3, "user addresses were looked up as the kernel's"},
	{[]Kind{Uretprobe}, []string{`a=$retval:symstr`}, Version{}, v6_3, "user addresses were looked up as the kernel's"},
	{[]Kind{Uprobe}, []string{`a=@0:symbol`, `a=@0:symbol[2]`, `a=@0:symstr`, `a=\5:symbol`}, Version{}, v6_3, "user addresses were looked up as the kernel's"},
	{[]Kind{Kprobe}, []string{`$arg1 $arg1`}, Version{}, v6_5, "without BTF they are arg1 and arg2"},
}
