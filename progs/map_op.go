package progs

//go:generate go tool bpf2go -output-stem map_op -target bpfel -go-package progs -type op_slot -type mode MapOp map_op.bpf.c
