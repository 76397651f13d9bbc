package progs

// The type of a pointer to an object of the kernel, which is in a map here, cannot be generated.
//go:generate go tool bpf2go -output-stem crypto -target bpfel -go-package progs -no-global-types -type mode -type crypto_slot -type bpf_crypto_params Crypto crypto.bpf.c
