package fetcharg

import (
	"os"
	"os/exec"
	"testing"

	"bpfbench/progs"

	"golang.org/x/sys/unix"
)

// valueCase are arguments that both engines fetch at the same hit. They get names, unless they are to have none.
type valueCase struct {
	kind    Kind
	target  string
	args    string
	trigger func(testing.TB) (hit, close func()) // nil: the kernel lacks it
	unnamed bool
	since   Version
}

func hitStub(t testing.TB) (hit, close func()) {
	d := newDriver(t, progs.FetchargProgCallStrncmp)
	return func() { d.call(t, 1, probedA, probedB) }, func() {}
}

func hitTrigger(t testing.TB) (hit, close func()) {
	if _, err := os.Stat(tracingDir + "/events/bpf_test_run/bpf_trigger_tp"); err != nil {
		return nil, nil
	}
	d := newDriver(t, progs.FetchargProgCallTrigger)
	return func() { d.call(t, 1, probedA, probedB) }, func() {}
}

func hitOpen(t testing.TB) (hit, close func()) {
	return func() { openFile(t.(*testing.T)) }, func() {}
}

func hitLeaf(testing.TB) (hit, close func()) {
	leaf := newLeaf()
	return func() { leaf.Call(1) }, func() {}
}

// hitRename changes the thread's name, which is fired with the old and the new one.
func hitRename(t testing.TB) (hit, close func()) {
	return func() {
		if err := os.WriteFile("/proc/thread-self/comm", []byte("renamed"), 0); err != nil {
			t.Fatal(err)
		}
	}, func() {}
}

// hitExec runs this binary, for nothing.
func hitExec(t testing.TB) (hit, close func()) {
	return func() {
		cmd := exec.Command("/proc/self/exe", "-test.run=^$")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}, func() {}
}

const (
	// allSizes are of a number.
	allSizes = `\-1:u8 \-1:u16 \-1:u32 \-1:u64 \-2:s8 \-2:s16 \-2:s32 \-2:s64 \-1:x8 \-1:x16 \-1:x32 \-1:x64 \65:char \0x123456789abcdef0 \0x123456789abcdef0:u32 ` +
		`\0x7fffffff:x64 \0x80000000:x64 \-0x80000000:x64 \0xabcd:b4@4/16 \-1:b63@1/64 \-1:b64@0/64 \-1:b32@0/32 \-1:b1@31/32 \200:b3@5/8 \0:u8 `
	symbolOf = `\-1:symbol `
	// texts are constant, and of the task.
	texts = `$comm $comm:string $COMM \"hello,{x}=y" \"" \"abc" \"abcd" \"abc":string `
	// ofStub are of memory that bpf_strncmp's arguments point to.
	ofStub = `+0($arg3):u8 +0($arg3):u16 +0($arg3):u32 +0($arg3):s8 +1($arg3):s16 +1($arg3):s32 +0($arg3):x8 +0($arg3):x16 +0($arg3):x32 +0($arg3):char ` +
		`+0($arg3):string +2($arg3):string -0($arg3):string +5($arg3):string +0(+0($arg1)):u32 +0(+0($arg1)):x64 +0($arg1) +0($arg1):u64 +0($arg1):symbol ` +
		`+0($arg3):u8[5] +0($arg3):char[5] +0($arg3):x16[2] +0($arg3):s32[1] +0($arg1):x64[1] +0($arg3):b4@2/8 +0($arg3):b4@2/8[3] +0($arg3):b7@9/16[2] +0($arg3):b32@0/32 ` +
		`+0($arg1):string[1] +0($arg1):ustring[1] +0($arg3):ustring +u0($arg3):u32 +u0($arg3):string +u0(+0($arg1)):u32 `
	// ofKernel are of variables of the kernel.
	ofKernel = `@linux_banner:u8 @linux_banner:x64 @linux_banner:string @linux_banner+6:string @linux_banner-0x0:char[64] @linux_banner:u64[20] @linux_banner:x16[64] ` +
		`@saved_command_line:string[1] +0(@saved_command_line):string +0(@saved_command_line):u8 +1(+0(@super_blocks)):x8 +0(+0(+0(@super_blocks))) +0(+0(+0(+0(@super_blocks)))) @super_blocks @super_blocks:x64[2] `
	// badTexts are texts that cannot be read, each before one that can: the order matters to the kernel.
	badTexts = `+0(\0):string \"one":string +0(+0(\0)):string \"two":string +0(+8(\0)):ustring \"three":string +0(+0(+0(\8))):string \"four":string +0(\0):string[2] \"five":string ` +
		`\5:string +0(\-8):string +0(\0x7fffffffffff):string +0(\0x8000000000000000):string +u0(\0):string`
	// badNumbers are faults that the kernel does not tell of.
	badNumbers = `+0(\0):u32 +0(\0) +0(+0(\0)):u8 +8(+8(\0)) +0(\0):u8[4] +0(\0):b4@0/8 @0:x64 +u0(\0):u16 +0(\-8):x64 `
	registers  = `%di %si %dx %cx %r8 %r9 %r10 %r11 %r12 %r13 %r14 %r15 %bx %bp %ax %orig_ax %ip %cs %flags %sp %ss %si:u8 %si:s32 %si:char %si:b3@1/32 %di:x16 +0(%dx):u32 +0(+0(%di)):u32 +0(%dx):string `
	stackWords = `$stack $stack0 $stack1 $stack2 $stack3 $stack10 $stack2048 $stack0:symbol $stack0:u8 $stack0:x32 $stack1:b8@8/32 $stack:x32 +0($stack):x64[4] +0($stack) +8($stack) `
	ofTask     = `$current $current:x32 $current->pid $current->comm:string $current->comm:u8[16] $current->real_parent->pid $current->real_parent->comm:string $current->flags:b8@0/32 ` +
		`(task_struct)$current->tgid (task_struct,group_leader)$current->pid +0($current->comm) $current->se.load.weight:u8 $current->policy $current->mm $current->in_execve $current->sched_migrated `
	// ofOpen are fields of vfs_open's parameters, ofRead of vfs_read's.
	ofOpen = ` path->dentry path->dentry->d_name.name:string path->dentry->d_name.len path->mnt->mnt_sb->s_id:string path->dentry->d_flags:x32 path->mnt file->f_flags file->f_mode ` +
		`file->f_flags:b8@0/32 p=+8($arg1):%pd p2=path->dentry:%pd file->f_op +0(path->dentry):x32 path->mnt->mnt_sb->s_id:u8[4] path->dentry->d_inode->i_sb->s_id:string`
	ofRead = `file file->f_path.dentry->d_name.name:string file:%pD file->f_path.dentry:%pd count:u8 count +0(buf):ustring +u0(buf):string +0($arg2):string +0(buf):u8[4] pos file->f_inode->i_ino ` +
		`file->f_inode->i_sb->s_type->name:string (file)$arg1->f_mode (file)file->f_flags (inode)(file->f_inode)->i_ino`
	ofLeaf = `%di %si %dx %ax %cx %ip %sp %flags %cs %ss %orig_ax %r8 %r15 %di:u8 +0(%si) +0(+0(%si)):u32 +0(%dx):u32 +0(%dx):string +0(%dx):ustring +u0(%dx):string +u0(%dx):u16 +0(%dx):u8[5] +0(%dx):char[5] ` +
		`+0(%dx):b4@2/8[3] +2(%dx):s16 +0(%si):string[1] +0(%si):ustring[1] +u0(%si):string[1] $stack $stack0 $stack1 $stack2 $stack0:u8 +0($stack):x64[4] @0x400000:x32 @0x400000:string @+1:u8 @0:string `
	perCPUs = `this_cpu_ptr(@cpu_info) this_cpu_read(@cpu_info):u32 this_cpu_read(@cpu_info):x64 this_cpu_ptr(\0) this_cpu_ptr(\8) this_cpu_read(@cpu_info):u8[8] +0(this_cpu_ptr(@cpu_info)):x32 this_cpu_read(\16):x8 `
)

var valueCases = []valueCase{
	{kind: Kprobe, target: stub, trigger: hitStub, args: allSizes + symbolOf + texts + `$arg1 $arg2 $arg3 $arg4 $arg5 $arg6 $arg7 $arg8 $arg2:u8 $arg2:s16 $arg2:b3@2/8 ` +
		ofStub + ofKernel + badNumbers + registers + stackWords + ofTask + perCPUs},
	{kind: Kprobe, target: stub, trigger: hitStub, args: badTexts},
	{kind: Kprobe, target: stub, trigger: hitStub, args: `$stack0:symstr`},
	{kind: Kprobe, target: stub, trigger: hitStub, args: `@linux_banner:symstr`},
	{kind: Kprobe, target: "vfs_open", trigger: hitOpen, args: `$arg*` + ofOpen, unnamed: true, since: v6_6},
	{kind: Kprobe, target: "vfs_open", trigger: hitOpen, args: `$arg1 $arg2:u32`, unnamed: true, since: v6_6},
	{kind: Kprobe, target: "vfs_read", trigger: hitRead, args: ofRead, since: v6_6},
	{kind: Kretprobe, target: stub, trigger: hitStub, args: allSizes + symbolOf + texts + `$retval $retval:u8 $retval:s32 $retval:x64 $retval:b2@0/8 $arg1 +0($arg3):u32 ` +
		ofKernel + badNumbers + stackWords + `%ax %sp %ip %bx ` + ofTask + perCPUs},
	{kind: Kretprobe, target: stub, trigger: hitStub, args: badTexts},
	{kind: Kretprobe, target: "do_sys_openat2", trigger: hitOpen, args: `$retval dfd +0($arg2):ustring`, since: v6_9},
	{kind: Fprobe, target: stub, trigger: hitStub, args: allSizes + symbolOf + texts + `$arg1 $arg2 $arg3 $arg4 $arg6 $arg7 $arg2:u8 ` + ofStub + ofKernel + badNumbers + stackWords + ofTask + perCPUs},
	{kind: Fprobe, target: stub, trigger: hitStub, args: badTexts},
	{kind: Fprobe, target: "vfs_open", trigger: hitOpen, args: `$arg*` + ofOpen, unnamed: true, since: v6_6},
	{kind: FprobeReturn, target: stub, trigger: hitStub, args: allSizes + symbolOf + texts + `$retval $retval:u8 $retval:s32 $arg1 ` + ofKernel + badNumbers + stackWords + ofTask + perCPUs},
	{kind: FprobeReturn, target: stub, trigger: hitStub, args: badTexts},
	{kind: Tprobe, target: "bpf_trigger_tp", trigger: hitTrigger, args: allSizes + symbolOf + texts + `$arg1 $arg1:s32 $arg1:u8 nonce nonce:x16 $arg1:b3@2/8 $arg2 ` + ofKernel + badNumbers + `$stack0 $stack ` + ofTask + perCPUs},
	{kind: Tprobe, target: "bpf_trigger_tp", trigger: hitTrigger, args: badTexts},
	{kind: Tprobe, target: "task_rename", trigger: hitRename, args: `$arg*`, unnamed: true, since: v6_6},
	{kind: Tprobe, target: "task_rename", trigger: hitRename, args: `task->comm:string comm:string comm task task->pid $arg1 +0($arg2):string`, since: v6_6},
	{kind: Eprobe, target: "bpf_test_run.bpf_trigger_tp", trigger: hitTrigger, args: allSizes + symbolOf + `$nonce $nonce:s32 $nonce:u8 $nonce:b3@2/8 nonce $comm $comm:string $COMM:string \"hi" \"hi":string $nonce:string ` + ofKernel + badNumbers},
	{kind: Eprobe, target: "bpf_test_run.bpf_trigger_tp", trigger: hitTrigger, args: badTexts},
	{kind: Eprobe, target: "syscalls.sys_enter_openat", trigger: hitOpen, args: `$dfd $dfd:s32 $__syscall_nr $flags $flags:x16 $mode $filename $filename:string $filename:ustring +0($filename):string +u0($filename):string +0($filename):ustring ` +
		`+0($filename):u8 +0($filename):u8[4] +0($filename):char[3] +u0($filename):x32`},
	{kind: Eprobe, target: "task.task_rename", trigger: hitRename, args: `$pid $newcomm $newcomm:string $oldcomm:string +0($newcomm):string +0($newcomm):char[4] +2($newcomm):u8 $oom_score_adj $oom_score_adj:s64 $comm $comm:string $newcomm:ustring ` +
		`(task_struct)$pid->comm:string $newcomm:b4@0/8`},
	{kind: Eprobe, target: "sched.sched_process_exec", trigger: hitExec, args: `$filename:string +0($filename):string +1($filename):string +0($filename):x8[4] $filename:x64 $pid $old_pid:s64 $filename:string[2] $filename:symstr`},
	{kind: Uprobe, trigger: hitLeaf, args: allSizes + texts + ofLeaf + badNumbers},
	{kind: Uprobe, trigger: hitLeaf, args: badTexts},
	{kind: Uretprobe, trigger: hitLeaf, args: allSizes + texts + `%ax $retval $retval:u8 %di +0(%dx):string $stack $stack0 ` + badNumbers},
	{kind: Uretprobe, trigger: hitLeaf, args: badTexts},
}

// hitRead reads some bytes of a file.
func hitRead(t testing.TB) (hit, close func()) {
	f, err := os.Open("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	return func() {
		if _, err := unix.Pread(int(f.Fd()), buf, 0); err != nil {
			t.Fatal(err)
		}
	}, func() { _ = f.Close() }
}
