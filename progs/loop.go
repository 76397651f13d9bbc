package progs

//go:generate go tool bpf2go -output-stem loop -target bpfel -go-package progs -type mode Loop loop.bpf.c
