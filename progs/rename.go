package progs

//go:generate go tool bpf2go -output-stem rename -target bpfel -go-package progs Rename rename.bpf.c
