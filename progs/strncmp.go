package progs

//go:generate go tool bpf2go -output-stem strncmp -target bpfel -go-package progs -type mode Strncmp strncmp.bpf.c
