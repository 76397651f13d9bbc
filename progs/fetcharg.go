package progs

//go:generate go tool bpf2go -output-stem fetcharg -target bpfel -go-package progs -type fetch_slot Fetcharg fetcharg.bpf.c
