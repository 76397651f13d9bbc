//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Programs that are put on a kernel function or tracepoint and count their hits, and the drivers that make them hit: they
 * call the function in a bounded loop, timed in the kernel. The loop is not bpf_loop, so that the drivers also run where
 * programs are interpreted. Kernels before 6.10 lack the kfunc, so that its driver is a program of its own.
 */
enum mode {
	MODE_CALL,
	MODE_TWIN,
};

#include "slot.bpf.h"

/* More than any kernel can have; the bound is a power of two. */
#define MAX_CPUS 8192
#define MAX_STACK 128

SLOTS(struct slot);

/* Hits on a CPU. No two hits are counted there at once, as no program runs within itself. */
struct cpu_hits {
	__u64 hits;
	__u8 pad[120];
} __attribute__((aligned(128)));

struct cpu_hits hits[MAX_CPUS];

struct stack {
	__u64 frames[MAX_STACK];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
} stacks SEC(".maps");

const volatile __u32 iters = 100;	/* calls of a test_run */
const volatile bool stacktrace = false;

/* Returns the size of the kernel's stack, or an error. */
static __always_inline long take_stack(void *ctx)
{
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&stacks, &zero);

	return s ? bpf_get_stack(ctx, s, sizeof(*s), 0) : -ENOENT;
}

static __always_inline void count(void)
{
	hits[bpf_get_smp_processor_id() & (MAX_CPUS - 1)].hits++;
}

#define TARGET "bpf_get_numa_node_id"

/* A hit counts only with the stack that it should take. */
#define PROBE(section, name, answer)			\
SEC(section)						\
int name(void *ctx)					\
{							\
	if (!stacktrace || take_stack(ctx) > 0)		\
		count();				\
	return answer;					\
}

PROBE("kprobe/" TARGET, on_kprobe, 0)
PROBE("kprobe.multi/" TARGET, on_kprobe_multi, 0)
PROBE("fentry/" TARGET, on_fentry, 0)
PROBE("fexit/" TARGET, on_fexit, 0)
PROBE("fmod_ret/bpf_modify_return_test_tp", on_fmodret, -EINVAL)
PROBE("tp/bpf_test_run/bpf_trigger_tp", on_tp, 0)
PROBE("raw_tp/bpf_trigger_tp", on_rawtp, 0)

/* What is on all other functions. */
SEC("kprobe.multi")
int on_all(void *ctx)
{
	return 0;
}

extern int bpf_modify_return_test_tp(int nonce) __ksym;

/* Does body iters times, and times that. */
#define CALLS(body) (s->ns = TIMED(for (i = 0; i < n; i++) { body; }))

#define DRIVER(name, loop)					\
SEC("raw_tp")							\
int name(struct bpf_raw_tracepoint_args *ctx)			\
{								\
	__u32 index = ctx->args[0], n = iters, i;		\
	struct slot *s = bpf_map_lookup_elem(&slots, &index);	\
								\
	if (!s)							\
		return 0;					\
	loop;							\
	s->ops = i;						\
	s->err = 0;						\
	s->cpu = bpf_get_smp_processor_id();			\
	s->calls++;						\
	return 0;						\
}

DRIVER(call_helper, CALLS(bpf_get_numa_node_id()))
DRIVER(call_kfunc, CALLS(bpf_modify_return_test_tp(0)))
/* The counting is done by the driver; its twin is the loop alone. */
DRIVER(call_counted,
	if (s->mode == MODE_TWIN)
		CALLS(asm volatile("" ::: "memory"));
	else
		CALLS(count(); bpf_get_numa_node_id()))

char LICENSE[] SEC("license") = "Dual MIT/GPL";
