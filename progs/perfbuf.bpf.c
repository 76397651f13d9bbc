//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Writes records into the perf buffer of the CPU that it runs on, a batch at each call, and counts those written and those
 * that there was no room for.
 */

/* There is one thing to do, which needs no request. */
enum mode { MODE_WRITE };

#include "slot.bpf.h"

/* Without max_entries, it has one for each possible CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} events SEC(".maps");

/* Of each slot, ops counts the records written, counts[0] those dropped, calls the batches; all of them from the start on. */
SLOTS(struct slot);

/* A record: one value of record_size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} record SEC(".maps");

const volatile __u32 batch_cnt = 500;
const volatile __u32 record_size = 8;

static __always_inline void run(void *ctx, __u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	__u32 zero = 0, count = batch_cnt, size = record_size, i;
	void *r = bpf_map_lookup_elem(&record, &zero);
	__u64 ops;

	if (!s || !r)
		return;
	ops = s->ops;
	for (i = 0; i < count; i++) {
		if (bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, r, size))
			s->counts[0]++;	/* rare, so it is in memory and keeps no register */
		else
			ops++;
	}
	s->ops = ops;
	s->calls++;
}

/* All programs of the triggers call their context ctx. */
#define RUN(index) run(ctx, index)
TRIGGERS(RUN)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
