package progs

//go:generate go tool bpf2go -output-stem storage_create -target bpfel -go-package progs -type slot StorageCreate storage_create.bpf.c
