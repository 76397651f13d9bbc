package progs

//go:generate go tool bpf2go -output-stem ringbuf -target bpfel -go-package progs Ringbuf ringbuf.bpf.c
