package progs

//go:generate go tool bpf2go -output-stem local_storage -target bpfel -go-package progs -type slot -type mode LocalStorage local_storage.bpf.c
