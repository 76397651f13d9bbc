/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What all programs have in common that producers ask for work: a slot for each producer, in mapped memory, and the ways
 * to make a program run. A request is written into the slot, a trigger is pulled, and the answer is read. An object defines
 * its enum mode, which says what there is to do, before it includes this.
 */
#ifndef SLOT_BPF_H
#define SLOT_BPF_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* A call of getpgid with this pid, which no process can have, plus the slot's index is a request to work. */
#define GETPGID_MAGIC 0x40000000

/* A producer's own: what is asked of the next call, and what came of the last. */
struct slot {
	/* the request */
	enum mode mode;
	__u32 first;	/* index of the first operation of a pass */
	__u32 count;	/* operations in a pass */
	__u32 passes;
	__u64 calls;	/* counted up by each call: 0 before it, 1 after it */
	/* the answer */
	__u64 ops;	/* that succeeded */
	__u64 ns;	/* that they took */
	__u32 cpu;
	__s32 err;	/* of the operation that ended the call, 0 for none */
	__u32 at;	/* index of that operation */
	__u8 pad0[4];
	__u64 counts[4];	/* the object's own, which requests leave alone */
	__u8 pad[40];
} __attribute__((aligned(128)));

/* The map of slots, of a type that is struct slot or begins with it. Its size is set when it is loaded. */
#define SLOTS(slot_type)				\
struct {						\
	__uint(type, BPF_MAP_TYPE_ARRAY);		\
	__uint(map_flags, BPF_F_MMAPABLE);		\
	__uint(max_entries, 1);				\
	__type(key, __u32);				\
	__type(value, slot_type);			\
} slots SEC(".maps")

/* Time in the loop, in ns. */
#define TIMED(loop) ({ __u64 t0 = bpf_ktime_get_ns(); loop; bpf_ktime_get_ns() - t0; })

struct sys_enter {
	__u64 common;
	__s64 nr;
	__u64 args[6];
};

struct pt_regs___x86 {
	unsigned long di;
} __attribute__((preserve_access_index));

struct pt_regs___arm64 {
	__u64 regs[31];
} __attribute__((preserve_access_index));

/* The first argument of a system call, by the registers that its wrapper is called with. */
static __always_inline __u32 syscall_arg0(void *regs)
{
	if (bpf_core_field_exists(struct pt_regs___x86, di))
		return BPF_CORE_READ((struct pt_regs___x86 *)regs, di);
	if (bpf_core_field_exists(struct pt_regs___arm64, regs))
		return BPF_CORE_READ((struct pt_regs___arm64 *)regs, regs[0]);
	return 0;
}

static __always_inline bool is_request(__u32 pid)
{
	return pid >= GETPGID_MAGIC && pid < 2 * (__u32)GETPGID_MAGIC;
}

/*
 * The programs that do work when a trigger is pulled; work(index) is what they do, with the slot's index: test_run, with
 * the index as the only argument; the tracepoint of getpgid; the function that the system call getpgid enters, whose
 * name is set when it is loaded.
 */
#define TRIGGERS(work)					\
SEC("raw_tp")						\
int call(struct bpf_raw_tracepoint_args *ctx)		\
{							\
	work(ctx->args[0]);				\
	return 0;					\
}							\
							\
SEC("tp/syscalls/sys_enter_getpgid")			\
int getpgid(struct sys_enter *ctx)			\
{							\
	__u32 pid = ctx->args[0];			\
							\
	if (is_request(pid))				\
		work(pid - GETPGID_MAGIC);		\
	return 0;					\
}							\
							\
SEC("fentry/sys_getpgid")				\
int getpgid_entry(__u64 *ctx)				\
{							\
	__u32 pid = syscall_arg0((void *)ctx[0]);	\
							\
	if (is_request(pid))				\
		work(pid - GETPGID_MAGIC);		\
	return 0;					\
}

/*
 * Behind a call of bpf_loop, it keeps the compiler from making one call of several with callbacks of their own. The kernel
 * only inlines a call that has the same callback always.
 */
#define APART asm volatile("" :: "i"(__COUNTER__))

#endif
