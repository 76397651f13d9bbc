//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * What drives probe events: a kernel function that is called in a loop, timed in the kernel. Two functions can be: the
 * helper bpf_strncmp, for kprobes and fprobes, and a kfunc that does nothing but hit the tracepoint bpf_trigger_tp, for
 * events on tracepoints. Both are called in a program of their own, as kernels before 6.10 lack the latter.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* A producer's own: what is asked of the next call, and what came of the last. */
struct fetch_slot {
	__u32 loops;
	__u32 nonce;	/* what the tracepoint's event has in its field of that name */
	__u64 calls;	/* counted up by each call: 0 before it, 1 after it */
	__u64 ops;	/* calls of the function */
	__u64 ns;	/* that they took */
	__u32 cpu;
	__u32 value;	/* behind two pointers from the first argument of bpf_strncmp */
	__u8 pad[88];
} __attribute__((aligned(128)));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fetch_slot);
} slots SEC(".maps");

/* The third argument of bpf_strncmp; its size, the second, is that of a pointer, which is what the first is read as. */
static const char name[] = "bench";

struct work {
	__u32 *value;
	__u32 nonce;
};

static long strncmp_one(__u32 i, struct work *w)
{
	bpf_strncmp((const char *)&w->value, sizeof(w->value), name);
	return 0;
}

extern int bpf_modify_return_test_tp(int nonce) __ksym;

static long trigger_one(__u32 i, struct work *w)
{
	bpf_modify_return_test_tp(w->nonce);
	return 0;
}

static __always_inline int run(struct bpf_raw_tracepoint_args *ctx, void *callback)
{
	__u32 index = ctx->args[0];
	struct fetch_slot *s = bpf_map_lookup_elem(&slots, &index);
	struct work w = {};
	__u64 start;
	long n;

	if (!s)
		return 0;
	w.value = &s->value;
	w.nonce = s->nonce;
	start = bpf_ktime_get_ns();
	n = bpf_loop(s->loops, callback, &w, 0);
	s->ns = bpf_ktime_get_ns() - start;
	s->ops = n < 0 ? 0 : n;
	s->cpu = bpf_get_smp_processor_id();
	s->calls++;
	return 0;
}

SEC("raw_tp")
int call_strncmp(struct bpf_raw_tracepoint_args *ctx)
{
	return run(ctx, strncmp_one);
}

SEC("raw_tp")
int call_trigger(struct bpf_raw_tracepoint_args *ctx)
{
	return run(ctx, trigger_one);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
