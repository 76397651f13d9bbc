//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * What runs at each hit of a uprobe: it counts, for the producer that has called the probed function with its index as the
 * first argument. As a producer is one thread, it is the only one that counts there, whatever preempts it.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* As many as a kernel for x86-64 has CPUs at most. An array of the object's own needs no lookup. */
#define MAX_PRODUCERS 8192

/* A producer's own. */
struct hits {
	__u64 n;
	__u8 pad[120];
} __attribute__((aligned(128)));

struct hits slots[MAX_PRODUCERS];

/* The registers, as <asm/ptrace.h> of user space has them, up to the one of C's first argument. */
struct regs_amd64 {
	__u64 others[14];
	__u64 di;
};

struct regs_arm64 {
	__u64 x0;
};

static __always_inline int count(__u32 index)
{
	slots[index & (MAX_PRODUCERS - 1)].n++;
	return 0;
}

/*
 * A program for each architecture, by its name in Go. The argument is in its register at the return, too, as the function
 * leaves that alone.
 */
SEC("uprobe")
int amd64(struct regs_amd64 *ctx)
{
	return count(ctx->di);
}

SEC("uprobe")
int arm64(struct regs_arm64 *ctx)
{
	return count(ctx->x0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
