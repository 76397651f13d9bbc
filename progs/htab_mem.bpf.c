//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Updates and deletes of elements of a hash map, in batches of BATCH, by producers that have keys of their own or share
 * them in pairs. How many there are is counted; how long they take, and the memory that the map then has, is measured elsewhere.
 */
enum mode {
	MODE_OVERWRITE,
	MODE_ADD,
	MODE_DELETE,
	MODE_ADD_DELETE,	/* a batch of adds, a batch of deletes, and so on */
};

#include "slot.bpf.h"

#define BATCH 64
#define MAX_VALUE 4096

/* Key i of an owner of keys is its number plus i times the number of owners: a producer, or two. */
const volatile __u32 owners = 1;
const volatile __u32 producers_of_owner = 1;

/* Its type and size are set when it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} hash SEC(".maps");

SLOTS(struct slot);

static const __u8 value[MAX_VALUE];

struct work {
	__u32 owner;
	__u32 first;
	__s32 err;
};

static __always_inline __u32 key_of(__u32 i, struct work *w)
{
	return w->owner + i % BATCH * owners;
}

static __always_inline long ended(long err, struct work *w)
{
	if (!err)
		return 0;
	w->err = err;
	return 1;
}

static __always_inline long update(__u32 i, struct work *w, __u64 flags)
{
	__u32 key = key_of(i, w);

	return ended(bpf_map_update_elem(&hash, &key, value, flags), w);
}

static __always_inline long delete(__u32 i, struct work *w)
{
	__u32 key = key_of(i, w);

	return ended(bpf_map_delete_elem(&hash, &key), w);
}

static long overwrite_one(__u32 i, struct work *w)
{
	return update(w->first + i, w, BPF_ANY);
}

static long add_one(__u32 i, struct work *w)
{
	return update(w->first + i, w, BPF_NOEXIST);
}

static long delete_one(__u32 i, struct work *w)
{
	return delete(w->first + i, w);
}

static long add_delete_one(__u32 i, struct work *w)
{
	i += w->first;
	return i & BATCH ? delete(i, w) : update(i, w, BPF_NOEXIST);
}

static __always_inline void run(__u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	struct work w = {};
	__u32 count;
	long n = 0;

	if (!s)
		return;
	w.owner = index / producers_of_owner;
	w.first = s->first;
	count = s->count;
	switch (s->mode) {
	case MODE_OVERWRITE:
		s->ns = TIMED(n = bpf_loop(count, overwrite_one, &w, 0); APART);
		break;
	case MODE_ADD:
		s->ns = TIMED(n = bpf_loop(count, add_one, &w, 0); APART);
		break;
	case MODE_DELETE:
		s->ns = TIMED(n = bpf_loop(count, delete_one, &w, 0); APART);
		break;
	case MODE_ADD_DELETE:
		s->ns = TIMED(n = bpf_loop(count, add_delete_one, &w, 0); APART);
		break;
	}
	s->cpu = bpf_get_smp_processor_id();
	s->err = n < 0 ? n : w.err;
	s->ops = n < 0 ? 0 : w.err ? n - 1 : n;
	s->at = w.first + n - 1;
	s->calls++;
}

SEC("raw_tp")
int call(struct bpf_raw_tracepoint_args *ctx)
{
	run(ctx->args[0]);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
