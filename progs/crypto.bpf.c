//go:build ignore

// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Encrypting and decrypting by the kernel's crypto functions, in a loop that is timed in the kernel, each producer from and to
 * memory of its own. The kernel has these functions for programs of tc and XDP only; a context is made by a syscall program.
 * The twin is the loop without them.
 */
enum mode {
	MODE_ENCRYPT,
	MODE_DECRYPT,
	MODE_TWIN,
};

#include "slot.bpf.h"

#define MAX_LEN 256

/* As the kernel has them (6.10), which the headers of this system may not have. */
struct bpf_crypto_params {
	char type[14];
	__u8 reserved[2];
	char algo[128];
	__u8 key[256];
	__u32 key_len;
	__u32 authsize;
};

struct bpf_crypto_ctx {
	void *tfm;
};

extern struct bpf_crypto_ctx *bpf_crypto_ctx_create(const struct bpf_crypto_params *params, __u32 params__sz, int *err) __ksym;
extern void bpf_crypto_ctx_release(struct bpf_crypto_ctx *ctx) __ksym;
extern int bpf_crypto_encrypt(struct bpf_crypto_ctx *ctx, const struct bpf_dynptr *src, const struct bpf_dynptr *dst,
			      const struct bpf_dynptr *siv) __ksym;
extern int bpf_crypto_decrypt(struct bpf_crypto_ctx *ctx, const struct bpf_dynptr *src, const struct bpf_dynptr *dst,
			      const struct bpf_dynptr *siv) __ksym;

const volatile __u32 len = 1; /* bytes, at most MAX_LEN */

/* What create makes the context of. */
struct bpf_crypto_params params = {};

struct crypto_slot {
	struct slot slot;
	__u8 src[MAX_LEN];
	__u8 dst[MAX_LEN];
};

SLOTS(struct crypto_slot);

struct context {
	struct bpf_crypto_ctx __kptr *ctx;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct context);
} context SEC(".maps");

/* Makes the context of all producers. It returns the error. */
SEC("syscall")
int create(void *args)
{
	__u32 zero = 0;
	struct context *c = bpf_map_lookup_elem(&context, &zero);
	struct bpf_crypto_ctx *ctx;
	int err = 0;

	if (!c)
		return -ENOENT;
	ctx = bpf_crypto_ctx_create(&params, sizeof(params), &err);
	if (!ctx)
		return err;
	ctx = bpf_kptr_xchg(&c->ctx, ctx);
	if (ctx)
		bpf_crypto_ctx_release(ctx);
	return 0;
}

/* Does n operations, or fewer until one fails, and returns how many succeeded. err is of the one that failed. */
#define LOOP(operation) ({						\
	for (; i < count; i++) {					\
		asm volatile goto("may_goto %l[out]" :::: out);		\
		barrier_var(i);						\
		err = operation;					\
		if (err)						\
			break;						\
	}								\
})

static __always_inline void run(__u32 index)
{
	__u32 zero = 0, i = 0, count;
	struct crypto_slot *k = bpf_map_lookup_elem(&slots, &index);
	struct context *c = bpf_map_lookup_elem(&context, &zero);
	struct bpf_crypto_ctx *ctx;
	struct bpf_dynptr src, dst;
	struct slot *s;
	__s32 err = 0;

	if (!k || !c)
		return;
	s = &k->slot;
	count = s->count;
	ctx = c->ctx;
	if (!ctx || bpf_dynptr_from_mem(k->src, len, 0, &src) || bpf_dynptr_from_mem(k->dst, len, 0, &dst))
		return;
	s->ns = TIMED({
		if (s->mode == MODE_ENCRYPT)
			LOOP(bpf_crypto_encrypt(ctx, &src, &dst, NULL));
		else if (s->mode == MODE_DECRYPT)
			LOOP(bpf_crypto_decrypt(ctx, &src, &dst, NULL));
		else
			LOOP(0);
out:;
	});
	s->cpu = bpf_get_smp_processor_id();
	s->ops = i;
	s->err = err;
	s->at = i;
	s->calls++;
}

/* The index of the slot is the packet's mark. */
SEC("tc")
int call(struct __sk_buff *skb)
{
	run(skb->mark);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
