package progs

//go:generate go tool bpf2go -output-stem bloom -target bpfel -go-package progs -type mode Bloom bloom.bpf.c

// What a call of the object of Bloom counts in the counts of its slot, by index.
const (
	BloomFound     = 0 // values that are in the hash map
	BloomFalseHits = 1 // values that the filter has and the hash map has not
)

// BloomChunk is how many values an element of the map of values has.
const BloomChunk = 8
