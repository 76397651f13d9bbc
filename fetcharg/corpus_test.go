package fetcharg

import (
	"fmt"
	"strings"
)

// corpus are lists of arguments, valid and invalid, by the kinds of probes that they are tried on. FILE stands for a
// parameter that is a pointer to a struct, FIELD for a field of that which is one.
var corpus = []struct {
	kinds []Kind
	lists []string
}{
	// How arguments are read is the same for all kinds, and it takes the kernel long to define some: these are enough.
	{[]Kind{Kprobe, Eprobe, Uprobe}, []string{
		// numbers
		`\5`, `\-5`, `\+5`, `\++5`, `\+-5`, `\--5`, `\0x`, `\08`, `\`, `\x`, `\0b1`, `\1_0`, `\18446744073709551615`, `\18446744073709551616`,
		`\-9223372036854775808`, `\-9223372036854775809`, `@0x400000`, `@0xg`, `@018`, `@0xffffffffffffffff`, `@0x10000000000000000`, `@12x`,
		// strings
		`a=\"hi"`, `a=\"hi`, `a=\"hi there"`, `a=\"`, `a=\""`, `a=\"a"b"`, `a=\"a:b"`, `a=\"a=b"`, `\"a=b"`, `a=\"a#b"`, `a=\"à"`, `a=\"é"`, "a=\\\"x\xa0y\"",
		`a=\"hi":string`, `a=\"hi":u8`, `a=\"hi":u64`, `a=\"hi":string[1]`, `a=\"hi":ustring`, `a=\"hi":symstr`, `+0(\"hi")`,
		// the task's name
		`a=$comm`, `a=$COMM`, `a=$comm:string`, `a=$comm:u32`, `a=$comm:string[2]`, `a=$comm:ustring`, `a=$comm:symstr`, `a=$COMM:symstr`, `+0($COMM)`, `a=+0($comm):string`,
		// dereferences
		`a=++5(@0)`, `a=+-5(@0)`, `a=-+5(@0)`, `a=--5(@0)`, `a=+u5(@0)`, `a=-u5(@0)`, `a=+u-5(@0)`, `a=-u-5(@0)`, `a=u5(@0)`, `a=+uu5(@0)`, `a=+(@0)`, `a=+u(@0)`,
		`a=+0x(@0)`, `a=+08(@0)`, `a=+010(@0)`, `a=+0X10(@0)`, `a=+0()`, `a=+0(@0`, `a=+0@0`, `a=+0(@0))`, `a=+0( @0)`, `a=+0x10000000000000000(@0)`,
		`a=+2147483647(@0)`, `a=-2147483648(@0)`, `a=+0(+u0(-8(@0))):u8`,
		`a=+0(@0)junk`, `a=+2147483648(@0)`, `a=-2147483649(@0)`,
		// types
		`a=@0:u8`, `a=@0:s16`, `a=@0:x32`, `a=@0:u64`, `a=@0:char`, `a=@0:string`, `a=@0:ustring`, `a=@0:symbol`, `a=@0:symstr`, `a=@0:%pd`, `a=@0:%pD`, `a=@0:%pX`, `a=@0:U8`, `a=@0:u128`, `a=@0:bool`,
		`a=@0:`, `a=@0:[2]`, `a=@0:u8:u8`, `a=@0:u8[2]`, `a=@0:u8[64]`, `a=@0:u8[65]`, `a=@0:u8[0]`, `a=@0:u8[0x4]`, `a=@0:u8[+4]`, `a=@0:u8[-4]`, `a=@0:u8[]`, `a=@0:u8[2`, `a=@0:u8]2[`, `a=@0:u8[2]x`, `a=@0:u8[2][2]`,
		`a=@0:string[2]`, `a=@0:symstr[2]`, `a=@0:symbol[2]`, `a=@0:char[3]`, `a=@0:%pd[2]`,
		`a=\5:string`, `a=\5:symstr`, `a=\5:u8[2]`, `a=\5:string[2]`, `a=\5:symbol`, `a=\5:b4@0/8`, `a=\5:%pd`,
		`a=+u0(@0):string`, `a=+u0(@0):symstr`, `a=+u0(@0):u8[2]`, `a=+u0(@0):string[2]`, `a=+u0(@0):b4@0/8[2]`,
		`a=@0:b4@0/8`, `a=@0:b8@0/8`, `a=@0:b9@0/8`, `a=@0:b4@5/8`, `a=@0:b0@0/8`, `a=@0:b1@0/24`, `a=@0:b1@0/64`, `a=@0:b1@0`, `a=@0:b@0/8`, `a=@0:b1@/8`, `a=@0:b1/8`, `a=@0:b0x4@0x1/0x20`, `a=@0:b+4@0/8`, `a=@0:b4@0/+8`, `a=@0:b4@0/8[2]`, `a=@0:b4@0/8/8`, `a=@0:b4@0@0/8`, `a=@0:b08@0/8`, `a=@0:b32@0/32`,
		`a=@0:b4@18446744073709551615/8`,
		// names
		`=\1`, `a=`, `a==\1`, `a=\1=\2`, `1a=\1`, `a-b=\1`, `é=\1`, "\xe9=\\1", `_=\1`, `common_type=\1`, `common_flags=\1`, `common_preempt_count=\1`, `common_pid=\1`, `common_tgid=\1`, `common_foo=\1`,
		`__probe_ip=\1`, `__probe_func=\1`, `__probe_ret_ip=\1`, `__probe_nargs=\1`, `a=\1 a=\2`, `arg2=\1 \2`, `\1 arg1=\2`, `arg1=\1 \2`, `a=\1 b=\2 A=\3`,
		strings.Repeat("a", 32) + `=\1`, strings.Repeat("a", 33) + `=\1`, "a=\\1\tb=\\2", "a=\\1\xa0b=\\2", `a=\1 # b`,
		// limits
		textOf(63), textOf(64), textOf(255), textOf(256), nest(8, "@0"), nest(9, "@0"), nest(12, "@0"), nest(13, "@0"), nest(14, `\0`), nest(13, `\0`) + ":b4@0/8", nest(13, `\0`) + ":u8[2]", nest(12, `\0`) + ":b4@0/8[2]", nest(13, `\0`) + ":string[2]",
		many(128, `\0:u8`), many(129, `\0:u8`), many(6, "@0:u64[64]"), many(7, "@0:u64[64]"), many(6, "@0:u64[64]") + ` b=\0:u8`,
		many(9, "@0:%pd"), many(10, "@0:%pd"), many(11, "@0:%pd"), many(8, "@0:%pD"), many(7, "@0:%pD"), nest(5, "@0") + ":%pd", nest(6, "@0") + ":%pd", nest(7, "@0") + ":%pd",
	}},
	// What only some kinds have.
	{Kinds, []string{
		`%di`, `%zz`, `%`, `%DI`, `+0(%di)`, `a=%di:string`, `a=%di:symstr`, `a=%di:symbol`, `a=%di:u8[2]`, `a=%di:string[2]`, `a=%di:%pd`, `+0(%di):u8[2]`,
		`$stack`, `$stack0`, `$stack2048`, `$stack2049`, `$stack4294967295`, `$stack4294967296`, `$stack007`, `$stack-1`, `$stackx`, `a=$stack:symstr`, `a=$stack0:symstr`, `a=$stack0:string`, `a=+0($stack):u8[2]`,
		`@jiffies`, `@jiffies+8`, `@jiffies-0x8:u32`, `@jiffies++8`, `@jiffies+-8`, `@jiffies+8+8`, `@jiffies+`, `@jiffies*8`, `@jiffies+9223372036854775808`, `@jiffies-9223372036854775808`, `@-5`, `@`,
		`@+5`, `@+0x5:u8`, `@+-5`, `@+x`, `+0(@+5):string`,
		`$retval`, `a=$retval:u32`, `a=$retval:symstr`, `a=$retval:u8[2]`, `$foo`, `$`, `a=$arg1`, `a=$arg0`, `a=$arg2048`, `a=$arg2049`, `a=$arg`, `a=$arg+1`, `a=$arg01`, `a=$arg1:symstr`, `a=$arg1:string`, `a=+0($arg1):u8`,
		`$current`, `a=$current:symstr`, `a=$current:string`, `$current.pid`,
		`this_cpu_ptr(@0)`, `this_cpu_read(@0)`, `a=this_cpu_read(@0):string`, `a=this_cpu_ptr(@0):string`, `a=this_cpu_read(@0):symstr`, `a=this_cpu_ptr(@0):symstr`, `a=this_cpu_read(@0):u8[2]`, `a=this_cpu_ptr(@0):u8[2]`, `a=this_cpu_ptr()`, `a=this_cpu_ptr(@0`, `a=this_cpu_ptr($COMM)`, `a=this_cpu_ptr(@0)junk`,
		`(file)@0->f_mode`, `(file)(@0)->f_mode`, `(file)@0`, `(file)(@0)`, `(file)@0.f_mode`, `()@0->f_mode`, `(file)->f_mode`, `(file)@0->`, `(file)+8(@0)->f_mode`, `(file)(+8(@0))->f_mode`, `(file,f_path)@0->f_mode`, `(file,f_path.dentry)@0->f_mode`, `(file,)@0->f_mode`, `(file,f_path->dentry)@0->f_mode`, `(file)\5->f_mode`, `(file)0->f_mode`,
		`(dentry)((file)@0->f_path.dentry)->d_name.name:string`, `(file)((file)((file)@0->f_op)->f_op)->f_op`, `(file)this_cpu_ptr(@0)->f_mode`, `(file)$comm->f_mode`,
		casts(8), casts(9), nest(7, "(file)@0->f_op"), nest(8, "(file)@0->f_op"), nest(8, "this_cpu_ptr(@0)"),
	}},
	{[]Kind{Kprobe, Kretprobe, Fprobe, FprobeReturn, Tprobe, Uprobe}, []string{
		`$arg1`, `$arg1 $arg2:u32`, `$arg1 $arg1`, `$arg9`, `$arg`, `$arg1:foo`, `$arg1->f_op`, `$arg*`, `a=$arg*`, `$arg* $arg*`, `$arg* $comm`, `+0($arg*)`, `$arg*:u8`, `$arg*x`, `$ARG1`, `$arg* a=\1`,
		`FILE`, `a=FILE`, `FILE:u32`, `FILE FILE`, `FILE=\1 FILE`, `a=FILE a=FILE`, `nosuch`, `FILE.f_op`, `FILE-f_op`, `a=FILE:string`, `a=FILE:symstr`, `a=FILE:u8[2]`, `FILE:%pd`, `f=FILE:%pD`, `$arg1:%pd`,
		`FILE->FIELD`, `a=FILE->FIELD:u8`, `a=FILE->FIELD:u8[2]`, `a=FILE->FIELD:symstr`, `a=FILE->FIELD:b4@0/32`, `FILE->nosuch`, `FILE->`, `FILE->FIELD-x`, `FILE->->FIELD`, `FILE->1x`, `FILE->FIELD.`, `FILE->FIELD..x`, `+0(FILE->FIELD)`, `+0(FILE)`, `+0(FILE)->FIELD`,
		`(STRUCT)FILE->FIELD`, `(STRUCT)(FILE)->FIELD`, `(STRUCT)$arg1->FIELD`, `(STRUCT)FILE`, `(STRUCT)FILE->FIELD->FIELD`, `(nosuch)FILE->FIELD`, `(STRUCT)@jiffies->FIELD`, `(STRUCT)@jiffies+8->FIELD`, `(STRUCT)(@jiffies+8)->FIELD`, `(STRUCT)$stack0->FIELD`, `+0((STRUCT)FILE->FIELD)`,
		`$current->pid`, `a=$current->comm:string`, `a=$current->comm:u8[2]`, `(task_struct)$current->pid`, `(task_struct,group_leader)$current->pid`, `$current->`, parents(14), parents(14) + ":u8[2]", parents(14) + ":symstr", parents(15), `$retval->x`, `$retvalx`,
	}},
	{[]Kind{Uretprobe}, []string{`$retval->x`, `$retvalx`, `+0($retval):string`}},
	{[]Kind{Eprobe}, []string{
		`$prev_pid`, `a=$prev_pid:u32`, `$nosuch`, `$common_pid`, `$prev_comm`, `a=$prev_comm:string`, `a=+0($prev_comm):string`, `a=$prev_comm:symstr`, `a=$prev_pid:string`, `a=$prev_pid:string[2]`, `a=$prev_pid:symstr`, `a=$prev_pid:u8[2]`, `a=+0($prev_comm):u8[4]`, `a=$prev_pid:char`, `a=$prev_pid:b4@0/32`, `a=$prev_pid:%pd`,
		`prev_pid`, `a=prev_pid:u32`, `a=nosuch`, `comm`, `+0(prev_pid)`, `prev_pid=$prev_pid prev_pid`, `$prev_pid $prev_pid`, `$prev_pid prev_pid`, `prev_pid->x`, `$prev_pid->x`, `$arg1`, `$arg*`, `$prev_pid.x`, `if`, `$prev_pid if`, `$prev_pid if prev_pid==1`,
		`(task_struct)prev_pid->pid`, `(task_struct)$prev_pid->pid`, `(task_struct)(+0($prev_pid))->pid`, `(task_struct)nosuch->pid`, `this_cpu_ptr($prev_pid)`, `+u0($prev_pid):ustring`, nest(12, "$prev_pid"),
	}},
}

// textOf is an argument of so many bytes.
func textOf(n int) string { return `\"` + strings.Repeat("x", n-3) + `"` }

func nest(n int, e string) string { return strings.Repeat("+0(", n) + e + strings.Repeat(")", n) }

func many(n int, body string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("a%d=%s", i, body))
	}
	return strings.Join(list, " ")
}

func casts(n int) string {
	e := "@0"
	for range n {
		e = "(file)(" + e + ")->f_op"
	}
	return e
}

func parents(n int) string { return "$current" + strings.Repeat("->real_parent", n) }
