// Package fetcharg is the language in which the kernel's probe events are told what to record: fetch arguments
// (fetchargs), such as `a=$arg1 b=+0(+0($arg2)):u32`.
//
// Parse reads a list of arguments, Check says what a kind of probe refuses of them, Needs which kernels have them, and an
// Event prints the line that defines it in tracefs. ParseFormat reads the format file that the kernel makes for an event;
// with it, Decode takes a record apart, and FormatLine prints the values as the kernel's trace_pipe does.
//
// # The language
//
// An argument is [NAME=]EXPR[:TYPE]. Without a name the kernel calls it argN, N being its place in the list from 1; a
// parameter that is fetched by its own name keeps that, and so does $argN where the kernel knows the name from BTF.
//
//	%REG                   register, see Regs                      kprobes, uprobes and their returns
//	$argN                  parameter N, from 1                     kernel functions and tracepoints; named or not
//	$arg*                  all parameters by their names           the same, from BTF
//	NAME                   parameter by its name (from BTF);       the same;
//	                       field of the event                      eprobes
//	$FIELD                 field of the event                      eprobes
//	$retval                returned value                          return probes
//	$stackN, $stack        entry N of the stack, stack pointer     not eprobes
//	$comm                  name of the running task                all; $COMM is the same
//	$current               task_struct of the running task         kernel, not eprobes
//	@ADDR                  memory at an address                    all (a user address in uprobes)
//	@SYMBOL[+OFF|-OFF]     memory at a kernel symbol               not uprobes
//	@+OFF                  memory at an offset of the probed file  uprobes
//	\NUMBER, \"STRING"     the value itself                        all
//	+[u]OFF(EXPR), -…      memory at EXPR + OFF; u: of the user    all
//	X->FIELD[.FIELD|->…]   field of what X points to (from BTF)    X is NAME, $retval or $current
//	(STRUCT[,FIELD])X->…   the same, X taken as a pointer to STRUCT, or to that FIELD of it
//	this_cpu_ptr(EXPR)     this CPU's copy of a per-CPU variable: its address,
//	this_cpu_read(EXPR)    or its value                            kernel, not eprobes
//
//	u8 u16 u32 u64, s…, x… unsigned, signed, hexadecimal           x64 is what an argument without type has
//	char                   a character
//	string, ustring        text in memory, of the kernel or the user; $comm and \"…" are strings without saying
//	symbol, symstr         an address, printed or recorded as symbol+offset
//	%pd, %pD               path component that a struct dentry or struct file names
//	bW@O/C                 W bits at bit O of a container of C bits
//	T[N]                   N elements of T that follow each other in memory, at most 64
//
// Numbers are decimal, 0x… or octal (0…). Arguments are separated by blanks, also within \"…": a string holds no blank,
// no colon, and no # (which starts a comment in dynamic_events). The kernel's own text on the language is
// /sys/kernel/tracing/README and Documentation/trace/{kprobetrace,fprobetrace,eprobetrace,uprobetracer}.rst; what these
// leave open was taken from kernel/trace/trace_probe.c and tried on kernels 6.1, 6.12 and 7.3 (see corpus_test.go).
//
// # What is refused although a kernel takes it
//
// Where a kernel silently does something else than was written, Parse or Check refuses it: text after a closing parenthesis
// (`+0(%di)junk` is read as `+0(%di)`), offsets of a dereference that need more than 32 bits (the upper ones are lost), a
// type or text after $arg*, $retval in an entry fprobe (which makes it a return probe), text after $retval in a return uprobe,
// stack entries and bit fields whose numbers overflow, the 129th argument (left out before 6.12), names that are not ASCII.
// Numbers in $argN and $stackN are taken without leading zeros and signs only, as an eprobe's field may have such a name.
//
// # Traps
//
// Seen on 6.1, 6.12, 6.18 and 7.3, and not refused:
//   - A number that cannot be read leaves in the record what was in the buffer before; only text is marked as (fault).
//   - In uprobes \"STRING" is recorded as (fault): the kernel takes its address for one of the process.
//   - In eprobes $comm and \"STRING" are recorded as addresses, unless their type is string.
//   - In eprobes of 6.1 a field that is a char pointer is one byte of it, sign-extended: it cannot be dereferenced.
//   - 6.1 reads @+OFFSET at twice the offset.
//   - symstr is recorded without a zero byte at its end, so that the record's next text is printed with it.
//   - 7.3 looks an fprobe's and a tprobe's @SYMBOL up when the event is enabled: one that is not there is no error before.
//   - BTF decides on more than the language: an unnamed $argN is refused if the function has no such parameter, and text
//     if the parameter is no pointer to char; with a name, neither is looked at.
package fetcharg
