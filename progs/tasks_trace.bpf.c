//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Makes and deletes task storage, whose freeing waits for a grace period of RCU Tasks Trace, and times those: from the
 * step before a grace period to the one behind it. Kernels that have no such functions wait by SRCU.
 */
enum mode {
	MODE_FREE,
};

#include "slot.bpf.h"

SLOTS(struct slot);

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, int);
} storage SEC(".maps");

/* One grace period follows another, in one thread of the kernel. */
struct counted {
	__u64 began;
	__u64 periods;
	__u64 elapsed;
	__u64 strays;
};

struct counted gp;

static long free_one(__u32 i, __s32 *err)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!bpf_task_storage_get(&storage, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		*err = -ENOMEM;
	else
		*err = bpf_task_storage_delete(&storage, task);
	return *err != 0;
}

static __always_inline void run(__u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	__s32 err = 0;
	long n;

	if (!s)
		return;
	s->ns = TIMED(n = bpf_loop(s->count, free_one, &err, 0));
	s->cpu = bpf_get_smp_processor_id();
	s->ops = n < 0 ? 0 : n;
	s->err = err;
	s->at = n;
	s->calls++;
}

TRIGGERS(run)

SEC("fentry/rcu_tasks_trace_pregp_step")
int before(void *ctx)
{
	gp.began = bpf_ktime_get_ns();
	return 0;
}

SEC("fentry/rcu_tasks_trace_postgp")
int behind(void *ctx)
{
	if (gp.began) {
		gp.elapsed += bpf_ktime_get_ns() - gp.began;
		gp.periods++;
	} else {
		gp.strays++;
	}
	gp.began = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
