//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Loops that do nothing: bpf_loop over an empty callback, and the open-coded iterator over numbers. Each is done passes times,
 * in an outer bpf_loop, and says itself how many iterations it has done. The twin is the outer loop alone.
 */
enum mode {
	MODE_WORK,
	MODE_TWIN,
};

#include "slot.bpf.h"

/* As the kernel has it; the headers of this system may not. */
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));

/* Linux 6.4. Weak, so that the object loads without them where iterator is not set. */
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym __weak;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym __weak;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym __weak;

/* Whether the loop is the iterator's, and not bpf_loop's. */
const volatile bool iterator = false;

SLOTS(struct slot);

struct work {
	__u32 count;
	__s32 err;
	__u64 ops;
};

static long nothing(__u32 i, void *ctx)
{
	return 0;
}

static long loop_pass(__u32 i, struct work *w)
{
	/* What is refused is negative, and so is the sum: not what was asked for. */
	w->ops += bpf_loop(w->count, nothing, NULL, 0);
	return 0;
}

static long iterator_pass(__u32 i, struct work *w)
{
	struct bpf_iter_num it;
	int err = bpf_iter_num_new(&it, 0, w->count);
	__u64 n = 0;

	while (bpf_iter_num_next(&it))
		n++;
	bpf_iter_num_destroy(&it);
	w->ops += n;
	w->err = err;
	return err != 0;
}

static long twin_pass(__u32 i, struct work *w)
{
	w->ops += w->count;
	return 0;
}

static __always_inline void run(__u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	struct work w = {};
	__u32 passes;

	if (!s)
		return;
	w.count = s->count;
	passes = s->passes;
	if (s->mode == MODE_TWIN)
		s->ns = TIMED(bpf_loop(passes, twin_pass, &w, 0); APART);
	else if (iterator)
		s->ns = TIMED(bpf_loop(passes, iterator_pass, &w, 0); APART);
	else
		s->ns = TIMED(bpf_loop(passes, loop_pass, &w, 0); APART);
	s->cpu = bpf_get_smp_processor_id();
	s->ops = w.ops;
	s->err = w.err;
	s->at = 0;
	s->calls++;
}

TRIGGERS(run)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
