package progs

//go:generate go tool bpf2go -output-stem trigger -target bpfel -go-package progs -type mode Trigger trigger.bpf.c
