//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Bloom filters, and hash maps with and without one before them: loops over an array of values, timed in the kernel. The
 * same object fills the filter and the hash map from that array and has the twin: the same loops without these maps.
 */
enum mode {
	MODE_PUSH,	/* values into the filter */
	MODE_PEEK,	/* values that are in the filter */
	MODE_INSERT,	/* values into the hash map, each of them new */
	MODE_PROBE,	/* values that may be in the hash map, there */
	MODE_PROBE_BOTH,	/* the same, where the filter says that they may be in it */
	MODE_TWIN,
};

#include "slot.bpf.h"

/* What a call found, in counts of its slot. */
#define FOUND 0		/* values that are in the hash map */
#define FALSE_HITS 1	/* values that the filter has and the hash map has not */

SLOTS(struct slot);

/* The sizes and the number of hash functions are set when the maps are made. */
struct {
	__uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
	__uint(max_entries, 1);
	__uint(value_size, 8);
	__uint(map_extra, 1);
} bloom SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, 8);
	__uint(value_size, 8);
} hash SEC(".maps");

/*
 * The values, so many to an element, each stride bytes behind the one before. That makes what is around an operation less
 * than a callback of bpf_loop and a lookup of the value for each would be.
 */
#define CHUNK 8

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} values SEC(".maps");

const volatile __u32 stride = 8;

struct work {
	__u32 first;	/* a multiple of CHUNK */
	__u32 count;
	__u64 ops;
	__u64 found;
	__u64 false_hits;
	__s32 err;
};

/* Results of maps are of 32 bits on Linux 6.1: the others are not to be looked at. */
static __always_inline int push_one(void *v, struct work *w)
{
	return bpf_map_push_elem(&bloom, v, BPF_ANY);
}

static __always_inline int peek_one(void *v, struct work *w)
{
	return bpf_map_peek_elem(&bloom, v);
}

static __always_inline int insert_one(void *v, struct work *w)
{
	return bpf_map_update_elem(&hash, v, v, BPF_NOEXIST);
}

static __always_inline int probe_one(void *v, struct work *w)
{
	if (bpf_map_lookup_elem(&hash, v))
		w->found++;
	return 0;
}

static __always_inline int probe_both_one(void *v, struct work *w)
{
	int err = bpf_map_peek_elem(&bloom, v);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (bpf_map_lookup_elem(&hash, v))
		w->found++;
	else
		w->false_hits++;
	return 0;
}

static __always_inline int twin_one(void *v, struct work *w)
{
	*(volatile __u8 *)v;
	return 0;
}

/* Does something with each value of chunk i. A result other than 0 ends the loop. */
static __always_inline long chunk(__u32 i, struct work *w, int (*one)(void *, struct work *))
{
	__u32 key = w->first / CHUNK + i, left = w->count - i * CHUNK, j;
	void *v = bpf_map_lookup_elem(&values, &key);
	int err = 0;

	if (!v) {
		w->err = -EFAULT;
		return 1;
	}
	for (j = 0; j < CHUNK && j < left; j++, v += stride) {
		err = one(v, w);
		if (err)
			break;
	}
	w->ops += j;
	w->err = err;
	return err != 0;
}

#define PASS(name)							\
static long name(__u32 i, struct work *w)				\
{									\
	return chunk(i, w, name##_one);					\
}									\
									\
static long name##_pass(__u32 i, struct work *w)			\
{									\
	long n = bpf_loop((w->count + CHUNK - 1) / CHUNK, name, w, 0);	\
									\
	if (n < 0)							\
		w->err = n;						\
	return w->err != 0;						\
}

PASS(push)
PASS(peek)
PASS(insert)
PASS(probe)
PASS(probe_both)
PASS(twin)

static __always_inline void run(__u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	struct work w = {};
	__u32 passes;

	if (!s)
		return;
	w.first = s->first;
	w.count = s->count;
	passes = s->passes;

	switch (s->mode) {
	case MODE_PUSH:
		s->ns = TIMED(bpf_loop(passes, push_pass, &w, 0));
		break;
	case MODE_PEEK:
		s->ns = TIMED(bpf_loop(passes, peek_pass, &w, 0));
		break;
	case MODE_INSERT:
		s->ns = TIMED(bpf_loop(passes, insert_pass, &w, 0));
		break;
	case MODE_PROBE:
		s->ns = TIMED(bpf_loop(passes, probe_pass, &w, 0));
		break;
	case MODE_PROBE_BOTH:
		s->ns = TIMED(bpf_loop(passes, probe_both_pass, &w, 0));
		break;
	case MODE_TWIN:
		s->ns = TIMED(bpf_loop(passes, twin_pass, &w, 0));
		break;
	default:
		w.err = -EINVAL;
	}

	s->cpu = bpf_get_smp_processor_id();
	s->ops = w.ops;
	s->counts[FOUND] = w.found;
	s->counts[FALSE_HITS] = w.false_hits;
	s->err = w.err;
	s->at = w.first + (w.count ? w.ops % w.count : 0);
	s->calls++;
}

TRIGGERS(run)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
