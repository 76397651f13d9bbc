//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Operations on a map of any type: passes over keys, as nested bpf_loop, timed in the kernel. The type of the map is set
 * when the object is loaded; so is the operation, and what goes with neither is dead code then, which the verifier
 * does not see. The same object fills the map, checks what is in it, and has the twin: the loop without the map.
 */
enum mode {
	MODE_OP,
	MODE_TWIN,
	MODE_FILL,
	MODE_CHECK,	/* looks up what a fill has inserted */
};

#include "slot.bpf.h"

enum operation {
	OP_LOOKUP,	/* of a key that is there */
	OP_MISS,	/* the same of one that is not */
	OP_UPDATE,	/* of an entry that is there */
	OP_INSERT_DELETE,	/* of a key that is not there, which is then deleted */
	OP_REFUSED,	/* update of a key that is not there, for which a full map has no room */
};

#define MAX_KEY 1024
#define ORDER 65536

struct op_slot {
	struct slot slot;
	/* all bytes of every key; four of them (or fewer) hold its index instead */
	__u8 key[MAX_KEY];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} map SEC(".maps");

SLOTS(struct op_slot);

/* A producer's own indices of keys, in the order in which it uses them, where that is not one after the other. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4 * ORDER);
} orders SEC(".maps");

/* What is inserted: one value of map's value_size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} value SEC(".maps");

/* The error that ended the loop on this CPU; not in the callbacks' context, which would cost each of them a register. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __s32);
} failed SEC(".maps");

const volatile enum operation op = OP_LOOKUP;
/* Keys are used in the producer's order. */
const volatile bool ordered = false;
/* A word of the key precedes its index: the length of the prefix, of a trie. */
const volatile bool prefixed = false;
/* Programs can write to the map, so it is they who fill it. */
const volatile bool writable = true;
/* How a fill inserts: an array has all its entries from the start. */
const volatile __u64 fill_flags = BPF_NOEXIST;

struct work {
	__u32 *key;
	__u32 *index;	/* in the key */
	__u32 *order;
	void *value;
	__s32 *err;
	__u32 first;
	__u32 count;
	__u64 ops;
};

static __always_inline void *put_index(__u32 index, struct work *w)
{
	*w->index = index;
	return w->key;
}

/*
 * Ends the loop; err 0 is of an operation that should have failed. Which key it was is read from the key itself. Not inline,
 * so that a callback that goes on has no register to save for it.
 */
static __noinline long stop(__s32 err)
{
	__u32 zero = 0;
	__s32 *e = bpf_map_lookup_elem(&failed, &zero);

	if (e)
		*e = err ?: -EEXIST;
	return 1;
}

static __always_inline long lookup(void *key, struct work *w)
{
	return bpf_map_lookup_elem(&map, key) ? 0 : stop(-ENOENT);
}

static __always_inline long miss(void *key, struct work *w)
{
	return bpf_map_lookup_elem(&map, key) ? stop(0) : 0;
}

static __always_inline long update(void *key, struct work *w)
{
	int err = bpf_map_update_elem(&map, key, w->value, BPF_EXIST);

	return err ? stop(err) : 0;
}

static __always_inline long insert_delete(void *key, struct work *w)
{
	int err = bpf_map_update_elem(&map, key, w->value, BPF_NOEXIST);

	if (!err)
		err = bpf_map_delete_elem(&map, key);
	return err ? stop(err) : 0;
}

static __always_inline long twin(void *key, struct work *w)
{
	return 0;
}

static long fill_one(__u32 i, struct work *w)
{
	int err = bpf_map_update_elem(&map, put_index(w->first + i, w), w->value, fill_flags);

	return err ? stop(err) : 0;
}

/* The key stays what it was before the loop. err is an int, as only that is negative before Linux 6.4. */
static long refused_one(__u32 i, struct work *w)
{
	int err = bpf_map_update_elem(&map, w->key, w->value, BPF_ANY);

	return err == -E2BIG ? 0 : stop(err);
}

static long refused_twin_one(__u32 i, struct work *w)
{
	return 0;
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

PASS(fill, fill_one)
PASS(refused, refused_one)
PASS(refused_twin, refused_twin_one)

/* The passes of an operation on keys, one after the other and as they were drawn. */
#define PASSES(op)							\
static long op##_next_one(__u32 i, struct work *w)			\
{									\
	return op(put_index(w->first + i, w), w);			\
}									\
									\
static long op##_drawn_one(__u32 i, struct work *w)			\
{									\
	return op(put_index(w->order[(w->first + i) % ORDER], w), w);	\
}									\
									\
PASS(op##_next, op##_next_one)						\
PASS(op##_drawn, op##_drawn_one)

PASSES(lookup)
PASSES(miss)
PASSES(update)
PASSES(insert_delete)
PASSES(twin)

/*
 * Each loop is a call of its own: the asm, which makes no code, differs. Where the compiler joins them, it takes the address of
 * a pass before it looks whether that is the one, and the kernel, which drops the passes that are not called, then refuses to
 * load ("verifier bug: No program to jit").
 */
#define LOOP(pass) TIMED(({						\
	bpf_loop(passes, pass, &w, 0);					\
	asm volatile("" :: "i"(__COUNTER__));				\
}))
#define OP_LOOP(op) (ordered ? LOOP(op##_drawn) : LOOP(op##_next))

static __always_inline void run(__u32 index)
{
	struct op_slot *k = bpf_map_lookup_elem(&slots, &index);
	struct slot *s;
	struct work w = {};
	__u32 zero = 0, passes;

	if (!k)
		return;
	s = &k->slot;
	w.order = bpf_map_lookup_elem(&orders, &index);
	w.value = bpf_map_lookup_elem(&value, &zero);
	w.err = bpf_map_lookup_elem(&failed, &zero);
	if (!w.order || !w.value || !w.err)
		return;
	*w.err = 0;
	w.key = (__u32 *)k->key;
	w.index = w.key + prefixed;
	w.first = s->first;
	w.count = s->count;
	passes = s->passes;
	put_index(w.first, &w);

	if (s->mode == MODE_FILL && writable)
		s->ns = LOOP(fill);
	else if (s->mode == MODE_CHECK)
		s->ns = LOOP(lookup_next);
	else if (op == OP_REFUSED)
		s->ns = s->mode == MODE_TWIN ? LOOP(refused_twin) : LOOP(refused);
	else if (s->mode == MODE_TWIN)
		s->ns = OP_LOOP(twin);
	else if (op == OP_LOOKUP)
		s->ns = OP_LOOP(lookup);
	else if (op == OP_MISS)
		s->ns = OP_LOOP(miss);
	else if (op == OP_UPDATE)
		s->ns = OP_LOOP(update);
	else
		s->ns = OP_LOOP(insert_delete);

	s->cpu = bpf_get_smp_processor_id();
	s->ops = w.ops;
	s->err = *w.err;
	s->at = *w.index;
	s->calls++;
}

TRIGGERS(run)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
