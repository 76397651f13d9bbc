//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Lookups in a hash map: passes over its keys, as nested bpf_loop, timed in the kernel. A pass that is too long for one
 * call is asked for in parts. The same object fills the map and has the twin: the same loops without the map.
 */
enum mode {
	MODE_LOOKUP,
	MODE_TWIN,
	MODE_FILL,
};

#include "slot.bpf.h"

#define MAX_KEY 1024
/* Keys up to this size fit into the callback's context, which is on the stack. */
#define STACK_KEY 256

struct keyed_slot {
	struct slot slot;
	/* all bytes of every key; the first four (or fewer) hold its index instead */
	__u8 key[MAX_KEY];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} hash SEC(".maps");

SLOTS(struct keyed_slot);

/* What a fill inserts: one value of hash's value_size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} value SEC(".maps");

/*
 * The error that ended the loop on this CPU. It is here and not in the callback's context because that, kept over the
 * call of the map, would cost every callback a register and its saving; this costs only the one that fails.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __s32);
} failed SEC(".maps");

/*
 * Keys of at most STACK_KEY bytes and only whole passes: the key is in the callback's context and the callback's number
 * is the key's index, so that there is as little as possible around the lookup. Otherwise the key is in the slot and
 * first is added to the index.
 */
const volatile bool lean = false;

struct work {
	__u32 key[STACK_KEY / 4];
	__u32 *slot_key;
	void *value;
	__s32 *err;
	__u32 first;
	__u32 count;
	__u64 ops;
};

static __always_inline __u32 *lean_key(__u32 i, struct work *w)
{
	w->key[0] = i;
	return w->key;
}

static __always_inline __u32 *slot_key(__u32 i, struct work *w)
{
	w->slot_key[0] = w->first + i;
	return w->slot_key;
}

/* Ends the loop. Which key it was is read from the key itself. */
static __always_inline long stop(__s32 err)
{
	__u32 zero = 0;
	__s32 *e = bpf_map_lookup_elem(&failed, &zero);

	if (e)
		*e = err;
	return 1;
}

static long lookup_lean(__u32 i, struct work *w)
{
	if (!bpf_map_lookup_elem(&hash, lean_key(i, w)))
		return stop(-ENOENT);
	return 0;
}

static long lookup_slot(__u32 i, struct work *w)
{
	if (!bpf_map_lookup_elem(&hash, slot_key(i, w)))
		return stop(-ENOENT);
	return 0;
}

static long twin_lean(__u32 i, struct work *w)
{
	lean_key(i, w);
	return 0;
}

static long twin_slot(__u32 i, struct work *w)
{
	slot_key(i, w);
	return 0;
}

static long fill_one(__u32 i, struct work *w)
{
	long err = bpf_map_update_elem(&hash, slot_key(i, w), w->value, BPF_NOEXIST);

	return err ? stop(err) : 0;
}

/* bpf_loop returns how many callbacks it made, the one that failed and ended it included. */
#define PASS(name, callback)						\
static long name(__u32 i, struct work *w)				\
{									\
	long n = bpf_loop(w->count, callback, w, 0);			\
									\
	if (n < 0)							\
		return stop(n);						\
	w->ops += n;							\
	if (!*w->err)							\
		return 0;						\
	w->ops--;							\
	return 1;							\
}

PASS(lookup_pass_lean, lookup_lean)
PASS(lookup_pass_slot, lookup_slot)
PASS(twin_pass_lean, twin_lean)
PASS(twin_pass_slot, twin_slot)
PASS(fill_pass, fill_one)

static __always_inline void run(__u32 index)
{
	struct keyed_slot *k = bpf_map_lookup_elem(&slots, &index);
	struct slot *s;
	struct work w = {};
	__u32 zero = 0, passes;

	if (!k)
		return;
	s = &k->slot;
	w.value = bpf_map_lookup_elem(&value, &zero);
	w.err = bpf_map_lookup_elem(&failed, &zero);
	if (!w.value || !w.err)
		return;
	*w.err = 0;
	__builtin_memcpy(w.key, k->key, sizeof(w.key));
	w.slot_key = (__u32 *)k->key;
	w.first = s->first;
	w.count = s->count;
	passes = s->passes;

	if (s->mode == MODE_FILL)
		s->ns = TIMED(bpf_loop(passes, fill_pass, &w, 0));
	else if (s->mode == MODE_LOOKUP && lean)
		s->ns = TIMED(bpf_loop(passes, lookup_pass_lean, &w, 0));
	else if (s->mode == MODE_LOOKUP)
		s->ns = TIMED(bpf_loop(passes, lookup_pass_slot, &w, 0));
	else if (lean)
		s->ns = TIMED(bpf_loop(passes, twin_pass_lean, &w, 0));
	else
		s->ns = TIMED(bpf_loop(passes, twin_pass_slot, &w, 0));

	s->cpu = bpf_get_smp_processor_id();
	s->ops = w.ops;
	s->err = *w.err;
	s->at = lean && s->mode != MODE_FILL ? w.key[0] : w.slot_key[0];
	s->calls++;
}

TRIGGERS(run)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
