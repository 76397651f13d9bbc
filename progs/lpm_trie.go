package progs

//go:generate go tool bpf2go -output-stem lpm_trie -target bpfel -go-package progs -type mode LpmTrie lpm_trie.bpf.c
