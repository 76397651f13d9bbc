package progs

//go:generate go tool bpf2go -output-stem uprobe -target bpfel -go-package progs Uprobe uprobe.bpf.c
