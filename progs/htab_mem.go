package progs

//go:generate go tool bpf2go -output-stem htab_mem -target bpfel -go-package progs -type mode HtabMem htab_mem.bpf.c
