//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Gets from many task storage maps, or lookups in as many hash maps: each task has a cache of 16 storages, which more maps
 * than that overflow. Either goes through an array of maps; the twin ends there.
 */
enum mode {
	MODE_GET,	/* counts[1] sums the gets, and counts[2] those from map 0 */
	MODE_TWIN,
	MODE_FILL,	/* insert into the hash map with the number in counts[0] */
};

#include "slot.bpf.h"

SLOTS(struct slot);

/* Its inner maps are made, and their type chosen, when it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} maps SEC(".maps");

/* The maps are hash maps, of whose keys the first nr_keys are looked up. */
const volatile bool hashmap = false;
const volatile __u32 nr_keys = 1;
/* Map 0 is got behind every third map, once more. */
const volatile bool interleaved = false;
/* Gets until every map has had its turn. */
const volatile __u32 period = 1;

struct work {
	__u32 first;
	__u32 count;
	__u32 at;	/* number of the next get in its round */
	__u32 map;
	__s32 err;
	__u64 ops;
	__u64 first_map;	/* gets from map 0 */
};

/* The map of get number i of a round: 0 0 1 2, 3 0 4 5, … where interleaved. */
static __always_inline __u32 map_of(__u32 i)
{
	__u32 group = i / 4, nth = i % 4;

	if (!interleaved)
		return i;
	if (nth == 1)
		return 0;
	return group * 3 + (nth ? nth - 1 : 0);
}

static __always_inline long stop(struct work *w, __s32 err)
{
	w->err = err;
	return 1;
}

static __always_inline void *next_map(struct work *w)
{
	w->map = map_of(w->at);
	if (++w->at == period)
		w->at = 0;
	return bpf_map_lookup_elem(&maps, &w->map);
}

static long get_one(__u32 i, struct work *w)
{
	void *map = next_map(w);
	__u32 key;

	if (!map)
		return stop(w, -EINVAL);
	if (hashmap) {
		key = bpf_get_prandom_u32() % nr_keys;
		if (!bpf_map_lookup_elem(map, &key))
			return stop(w, -ENOENT);
	} else if (!bpf_task_storage_get(map, bpf_get_current_task_btf(), NULL, BPF_LOCAL_STORAGE_GET_F_CREATE)) {
		return stop(w, -ENOMEM);
	}
	if (!w->map)
		w->first_map++;
	return 0;
}

static long twin_one(__u32 i, struct work *w)
{
	void *map = next_map(w);
	__u32 key;

	if (!map)
		return stop(w, -EINVAL);
	if (hashmap) {
		key = bpf_get_prandom_u32() % nr_keys;
		__asm__ volatile("" : : "r"(key));
	} else {
		struct task_struct *task = bpf_get_current_task_btf();

		__asm__ volatile("" : : "r"(task));
	}
	if (!w->map)
		w->first_map++;
	return 0;
}

static long fill_one(__u32 i, struct work *w)
{
	__u32 key = w->first + i;
	void *map = bpf_map_lookup_elem(&maps, &w->map);
	long err;

	if (!map)
		return stop(w, -EINVAL);
	err = hashmap ? bpf_map_update_elem(map, &key, &key, BPF_NOEXIST) : -EINVAL;
	return err ? stop(w, err) : 0;
}

#define PASS(name, callback)				\
static long name(__u32 i, struct work *w)		\
{							\
	long n;						\
							\
	w->at = w->first % period;			\
	n = bpf_loop(w->count, callback, w, 0);		\
	if (n < 0)					\
		return stop(w, n);			\
	w->ops += n;					\
	if (!w->err)					\
		return 0;				\
	w->ops--;					\
	return 1;					\
}

PASS(get_pass, get_one)
PASS(twin_pass, twin_one)
PASS(fill_pass, fill_one)

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
	if (s->mode == MODE_FILL) {
		w.map = s->counts[0];
		s->ns = TIMED(bpf_loop(passes, fill_pass, &w, 0));
	} else if (s->mode == MODE_GET) {
		s->ns = TIMED(bpf_loop(passes, get_pass, &w, 0));
		s->counts[1] += w.ops;
		s->counts[2] += w.first_map;
	} else {
		s->ns = TIMED(bpf_loop(passes, twin_pass, &w, 0));
	}
	s->cpu = bpf_get_smp_processor_id();
	s->ops = w.ops;
	s->err = w.err;
	s->at = w.map;
	s->calls++;
}

TRIGGERS(run)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
