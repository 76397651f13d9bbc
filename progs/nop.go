package progs

//go:generate go tool bpf2go -output-stem nop -target bpfel -go-package progs -type mode Nop nop.bpf.c
