//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * The cheapest loop that the verifier takes without unrolling it: an index, and may_goto, which ends it after 2^23 iterations.
 * It is apart, as kernels before 6.9 refuse an object with an instruction that they do not know.
 */
enum mode {
	MODE_WORK,
};

#include "slot.bpf.h"

SLOTS(struct slot);

static __always_inline void run(__u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	__u32 i = 0, count;

	if (!s)
		return;
	count = s->count;
	s->ns = TIMED({
		for (; i < count; i++) {
			asm volatile goto("may_goto %l[out]" :::: out);
			barrier_var(i); /* counted, not concluded from count */
		}
out:;
	});
	s->cpu = bpf_get_smp_processor_id();
	s->ops = i;
	s->err = 0;
	s->calls++;
}

SEC("raw_tp")
int call(struct bpf_raw_tracepoint_args *ctx)
{
	run(ctx->args[0]);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
