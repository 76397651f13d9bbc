//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Makes a local storage for every socket and for every thread that a producer makes. A producer is known by its thread,
 * as the same process makes others, and other processes do.
 */
enum mode {
	MODE_REGISTER,
};

#include "slot.bpf.h"

/* Storages that were made, and that were not, are in counts[0] and counts[1], which only the producer's thread writes. */
SLOTS(struct slot);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);	/* a producer's thread */
	__type(value, __u32);	/* index of its slot */
} threads SEC(".maps");

struct storage {
	__u8 bytes[64];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct storage);
} of_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct storage);
} of_sockets SEC(".maps");

/* Makes the calling thread a producer. */
SEC("raw_tp")
int call(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 index = ctx->args[0], thread = bpf_get_current_pid_tgid();

	bpf_map_update_elem(&threads, &thread, &index, BPF_ANY);
	return 0;
}

static __always_inline struct slot *producer(void)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u32 *index = bpf_map_lookup_elem(&threads, &thread);

	return index ? bpf_map_lookup_elem(&slots, index) : NULL;
}

SEC("tp_btf/sched_process_fork")
int task(__u64 *ctx)
{
	struct task_struct *child = (void *)ctx[1];
	struct slot *s = producer();

	if (s)
		s->counts[!bpf_task_storage_get(&of_tasks, child, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE)]++;
	return 0;
}

struct sock;

struct socket {
	struct sock *sk;
} __attribute__((preserve_access_index));

SEC("lsm.s/socket_post_create")
int socket(__u64 *ctx)
{
	struct socket *socket = (void *)ctx[0];
	struct slot *s = producer();
	struct sock *sk;

	if (!s)
		return 0;
	sk = socket->sk;
	s->counts[!sk || !bpf_sk_storage_get(&of_sockets, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE)]++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
