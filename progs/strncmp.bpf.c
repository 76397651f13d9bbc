//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Compares of a string with one that differs in the last byte compared, by bpf_strncmp or by a loop of BPF, timed in the
 * kernel. The twin is the bpf_loop around them, empty.
 */
enum mode {
	MODE_COMPARE,
	MODE_TWIN,
};

#include "slot.bpf.h"

#define MAX_LEN 4095

/* What is set by the configuration: len characters, of which the last is one lower in text than in target. */
const volatile __u32 len = 1;
const volatile bool helper = false;
const volatile char text[MAX_LEN + 1] = {};
const volatile char target[MAX_LEN + 1] = {};

SLOTS(struct slot);

/* The result of a compare that was not below zero, plus one. No compare that is right writes here. */
static volatile __s32 wrong;

static __always_inline long judge(int result)
{
	if (result < 0)
		return 0;
	wrong = result + 1;
	return 1;
}

static long compare_helper(__u32 i, void *ctx)
{
	return judge(bpf_strncmp((const char *)text, len + 1, (const char *)target));
}

static long compare_loop(__u32 i, void *ctx)
{
	__u64 n = len;
	int result = 0;

	for (__u64 at = 0; at <= n; at++) {
		__u8 c = text[at];

		result = c - (__u8)target[at];
		if (result || !c)
			break;
	}
	return judge(result);
}

static long twin(__u32 i, void *ctx)
{
	return 0;
}

static __always_inline void run(__u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	__u32 count;
	long n = 0;

	if (!s)
		return;
	count = s->count;
	if (s->mode == MODE_TWIN)
		s->ns = TIMED(n = bpf_loop(count, twin, NULL, 0); APART);
	else if (helper)
		s->ns = TIMED(n = bpf_loop(count, compare_helper, NULL, 0); APART);
	else
		s->ns = TIMED(n = bpf_loop(count, compare_loop, NULL, 0); APART);
	s->cpu = bpf_get_smp_processor_id();
	s->err = n < 0 ? n : wrong ? -ERANGE : 0;
	s->at = n - 1;
	s->ops = s->err ? 0 : n;
	s->calls++;
}

TRIGGERS(run)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
