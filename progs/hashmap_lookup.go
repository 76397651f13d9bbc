// Package progs holds the BPF programs, each as C source, as the object compiled from it, and as the Go code that
// bpf2go generates around that object. `make generate` makes them anew.
package progs

//go:generate go tool bpf2go -output-stem hashmap_lookup -target bpfel -go-package progs -type slot -type mode HashmapLookup hashmap_lookup.bpf.c
