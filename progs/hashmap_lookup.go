// Package progs holds the BPF programs, each as C source, as the object compiled from it, and as the Go code that
// bpf2go generates around that object. `make generate` makes them anew.
package progs

//go:generate go tool bpf2go -output-stem hashmap_lookup -target bpfel -go-package progs -type slot -type keyed_slot -type mode HashmapLookup hashmap_lookup.bpf.c

// Slot is struct slot of slot.bpf.h, which the values of every object's map of slots begin with.
type Slot = HashmapLookupSlot

// SlotSize is the size of a Slot in bytes.
const SlotSize = 128

// The names that slot.bpf.h gives in every object that uses it: of the map of slots, and of the programs that the triggers
// test_run, tp and fentry run.
const (
	MapSlots  = HashmapLookupMapSlots
	ProgCall  = HashmapLookupProgCall
	ProgTP    = HashmapLookupProgGetpgid
	ProgEntry = HashmapLookupProgGetpgidEntry
)
