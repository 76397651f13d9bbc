//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Programs on the way of a task's rename, which count the renames that one process asks for.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct counted {
	/* one thread of the process renames, so that no two add at once */
	__u64 hits;
	__u32 tgid;	/* the process, as programs see it */
	__u32 pad;
};

struct counted ours;

/* Is run by the process, by test_run. What it takes itself to be differs in a namespace. */
SEC("raw_tp")
int identify(void *ctx)
{
	ours.tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

static __always_inline int count(void)
{
	if (bpf_get_current_pid_tgid() >> 32 == ours.tgid)
		ours.hits++;
	return 0;
}

SEC("kprobe/__set_task_comm")
int on_kprobe(void *ctx)
{
	return count();
}

SEC("raw_tp/task_rename")
int on_rawtp(void *ctx)
{
	return count();
}

SEC("fentry/__set_task_comm")
int on_fentry(void *ctx)
{
	return count();
}

SEC("fexit/__set_task_comm")
int on_fexit(void *ctx)
{
	return count();
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
