//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Writes records into a ring buffer, a batch at each call, and counts those written and those that there was no room for. */

/* There is one thing to do, which needs no request. */
enum mode { MODE_WRITE };

#include "slot.bpf.h"

/* Its size and flags are set when it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

/* Of each slot, ops counts the records written, counts[0] those dropped, calls the batches; all of them from the start on. */
SLOTS(struct slot);

/* What bpf_ringbuf_output copies: one value of record_size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} record SEC(".maps");

const volatile __u32 batch_cnt = 500;
const volatile __u32 record_size = 8;	/* at least 8 */
const volatile bool use_output = false;	/* copy a record, instead of reserving one and submitting it */
const volatile bool no_wakeup = false;	/* never notify the consumer */
const volatile __u64 wakeup_size = 0;	/* notify it when so many bytes wait, headers included; 0: as the kernel sees fit */

/* The flags of a record; added is what of it is not in the ring buffer yet. */
static __always_inline __u64 wakeup(__u64 added)
{
	if (no_wakeup)
		return BPF_RB_NO_WAKEUP;
	if (!wakeup_size)
		return 0;
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) + added >= wakeup_size ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* A record, of which the first eight bytes are written here and the rest is left as it is. */
static __always_inline bool submit(__u64 number)
{
	__u64 *r = bpf_ringbuf_reserve(&ring, record_size, 0);

	if (!r)
		return false;
	*r = number;
	bpf_ringbuf_submit(r, wakeup(0));
	return true;
}

static __always_inline bool output(void *r)
{
	__u64 size = (record_size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;

	return !bpf_ringbuf_output(&ring, r, record_size, wakeup(size));
}

/* Drops are rare, so they are counted in memory and keep no register. */
#define BATCH(write)				\
	for (i = 0; i < count; i++) {		\
		if (write)			\
			ops++;			\
		else				\
			s->counts[0]++;		\
	}

static __always_inline void run(__u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	__u32 zero = 0, count = batch_cnt, i;
	void *r = bpf_map_lookup_elem(&record, &zero);
	__u64 ops;

	if (!s || !r)
		return;
	ops = s->ops;
	if (use_output)
		BATCH(output(r))
	else
		BATCH(submit(ops))
	s->ops = ops;
	s->calls++;
}

TRIGGERS(run)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
