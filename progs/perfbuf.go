package progs

//go:generate go tool bpf2go -output-stem perfbuf -target bpfel -go-package progs Perfbuf perfbuf.bpf.c
