package progs

//go:generate go tool bpf2go -output-stem tasks_trace -target bpfel -go-package progs -type slot -type mode TasksTrace tasks_trace.bpf.c
