//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Operations on a trie of prefixes (LPM trie): loops over its keys, timed in the kernel, and the loops with nothing and with
 * nothing but the making of keys in them. Two programs time how long the kernel takes to free a trie.
 */
enum mode {
	MODE_NOOP,
	MODE_BASELINE,
	MODE_LOOKUP,
	MODE_UPDATE,
	/* These go through the keys in turn, whatever the configuration. */
	MODE_INSERT,
	MODE_CHECK,
	MODE_DELETE,
};

#include "slot.bpf.h"

#define NAME_LEN 16	/* BPF_OBJ_NAME_LEN */

struct trie_key {
	__u32 prefixlen;
	__u32 data;	/* big-endian */
};

SLOTS(struct slot);

/* Its size is set when it is made. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct trie_key);
	__type(value, __u32);
} trie SEC(".maps");

const volatile __u32 nr_entries = 1;
const volatile __u32 prefix_len = 32;
/* whether keys are drawn, and not taken in turn */
const volatile bool random = false;
/* The name of the trie whose end is timed, as memory has it. */
const volatile __u64 name[NAME_LEN / 8] = {};

struct work {
	struct trie_key key;
	__u32 shift;
	__u32 value;
	__u32 first;
	__u32 count;
	__u64 ops;
	__s32 err;
};

/* Keys are numbers, in the first prefix_len bits. */
static __always_inline struct trie_key *key(__u32 n, struct work *w)
{
	w->key.data = __builtin_bswap32(n << w->shift);
	return &w->key;
}

static __always_inline struct trie_key *turn(__u32 i, struct work *w)
{
	return key(w->first + i, w);
}

static __always_inline struct trie_key *any(__u32 i, struct work *w)
{
	return random ? key(bpf_get_prandom_u32() % nr_entries, w) : turn(i, w);
}

/* Ends the loop. */
static __always_inline long stop(struct work *w, long err)
{
	w->err = err;
	return 1;
}

static long noop(__u32 i, struct work *w)
{
	return 0;
}

static long baseline(__u32 i, struct work *w)
{
	any(i, w);
	return 0;
}

static long lookup(__u32 i, struct work *w)
{
	return bpf_map_lookup_elem(&trie, any(i, w)) ? 0 : stop(w, -ENOENT);
}

static long update(__u32 i, struct work *w)
{
	long err = bpf_map_update_elem(&trie, any(i, w), &w->value, BPF_EXIST);

	return err ? stop(w, err) : 0;
}

static long insert(__u32 i, struct work *w)
{
	long err = bpf_map_update_elem(&trie, turn(i, w), &w->value, BPF_NOEXIST);

	return err ? stop(w, err) : 0;
}

static long check(__u32 i, struct work *w)
{
	return bpf_map_lookup_elem(&trie, turn(i, w)) ? 0 : stop(w, -ENOENT);
}

static long delete(__u32 i, struct work *w)
{
	long err = bpf_map_delete_elem(&trie, turn(i, w));

	return err ? stop(w, err) : 0;
}

/* bpf_loop returns how many callbacks it made, the one that failed and ended it included. */
#define PASS(name)						\
static long name##_pass(__u32 i, struct work *w)		\
{								\
	long n = bpf_loop(w->count, name, w, 0);		\
								\
	if (n < 0)						\
		return stop(w, n);				\
	w->ops += n;						\
	if (!w->err)						\
		return 0;					\
	w->ops--;						\
	return 1;						\
}

PASS(noop)
PASS(baseline)
PASS(lookup)
PASS(update)
PASS(insert)
PASS(check)
PASS(delete)

static __always_inline void run(__u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	struct work w = {};
	__u32 passes;

	if (!s)
		return;
	w.key.prefixlen = prefix_len;
	w.shift = 32 - prefix_len;
	w.first = s->first;
	w.count = s->count;
	passes = s->passes;

	switch (s->mode) {
	case MODE_NOOP:
		s->ns = TIMED(bpf_loop(passes, noop_pass, &w, 0));
		break;
	case MODE_BASELINE:
		s->ns = TIMED(bpf_loop(passes, baseline_pass, &w, 0));
		break;
	case MODE_LOOKUP:
		s->ns = TIMED(bpf_loop(passes, lookup_pass, &w, 0));
		break;
	case MODE_UPDATE:
		s->ns = TIMED(bpf_loop(passes, update_pass, &w, 0));
		break;
	case MODE_INSERT:
		s->ns = TIMED(bpf_loop(passes, insert_pass, &w, 0));
		break;
	case MODE_CHECK:
		s->ns = TIMED(bpf_loop(passes, check_pass, &w, 0));
		break;
	case MODE_DELETE:
		s->ns = TIMED(bpf_loop(passes, delete_pass, &w, 0));
		break;
	default:
		w.err = -EINVAL;
	}

	s->cpu = bpf_get_smp_processor_id();
	s->ops = w.ops;
	s->err = w.err;
	s->at = w.first + (w.count ? w.ops % w.count : 0);
	s->calls++;
}

TRIGGERS(run)

struct work_struct {
	__u64 data;
};

struct bpf_map {
	struct work_struct work;
	char name[NAME_LEN];
} __attribute__((preserve_access_index));

/* What the two programs below keep in the first slot: the thread that frees the trie, 0 for none, and since when. */
#define FREES 0
#define SINCE 1

static __always_inline bool is_ours(void *work)
{
	struct bpf_map *map = work - bpf_core_field_offset(struct bpf_map, work);
	__u64 got[NAME_LEN / 8];

	if (bpf_probe_read_kernel(got, sizeof(got), (void *)map + bpf_core_field_offset(struct bpf_map, name)))
		return false;
	return got[0] == name[0] && got[1] == name[1];
}

/*
 * The kernel frees a map in a worker thread, which does nothing else until it is done: what begins with the one trie of
 * that name ends with the same thread, whatever other maps go meanwhile. Kprobes would not do: their programs are skipped
 * where the thread has preempted a system call on a map.
 */
SEC("fentry/bpf_map_free_deferred")
int free_entry(__u64 *ctx)
{
	__u32 zero = 0;
	struct slot *s = bpf_map_lookup_elem(&slots, &zero);

	if (!s || !is_ours((void *)ctx[0]))
		return 0;
	s->counts[FREES] = (__u32)bpf_get_current_pid_tgid();
	s->counts[SINCE] = bpf_ktime_get_ns();
	return 0;
}

SEC("fexit/bpf_map_free_deferred")
int free_exit(__u64 *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0;
	struct slot *s = bpf_map_lookup_elem(&slots, &zero);

	if (!s || s->counts[FREES] != (__u32)bpf_get_current_pid_tgid())
		return 0;
	s->counts[FREES] = 0;
	s->ns = now - s->counts[SINCE];
	s->cpu = bpf_get_smp_processor_id();
	s->ops = 1;
	__sync_fetch_and_add(&s->calls, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
