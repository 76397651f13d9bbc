package main

import (
	"context"
	"errors"
	"slices"

	"bpfbench/internal/vm"
)

// cpus boots guests with CPUs that are out of the common, each for tests that can run nowhere else.
func (t *tier) cpus(ctx context.Context) error {
	i := slices.IndexFunc(t.bins, func(b binary) bool { return b.pkg == suitePackage })
	if i < 0 {
		return nil
	}
	kernels, ok := t.findKernels("cpus")
	if !ok {
		return nil
	}
	defer closeKernels(kernels)
	guests := []guest{{
		kernel: kernels[len(kernels)-1], with: "an offline CPU", cpus: 3, env: []string{"BPFBENCH_TEST_HOTPLUG=1"}, tests: []string{"TestOfflineCPU", "TestOfflineCPUBuffers"},
	}}
	if k := manyCPUs(kernels); k != nil {
		guests = append(guests, guest{kernel: k, with: "300 possible CPUs", cpus: 2, append: "possible_cpus=300", tests: []string{"TestManyCPUs"}})
	} else {
		t.out.leaveOut("cpus", errors.New("more than 256 possible CPUs take a kernel before 6.9: make kernels fetches one (bookworm)"))
	}
	for i := range guests {
		for _, test := range guests[i].tests {
			guests[i].demand = append(guests[i].demand, demand{suitePackage, test, ""})
		}
	}
	return t.bootAll(ctx, guests, t.bins[i:i+1])
}

// manyCPUs returns the newest kernel that takes more possible CPUs from its command line than the firmware lists. From 6.9
// on there is none (arch/x86/kernel/cpu/topology.c), and QEMU's emulation lists 255 at most before it has the x2APIC.
func manyCPUs(kernels []*vm.Kernel) *vm.Kernel {
	for _, k := range slices.Backward(kernels) {
		if older(k.Release, "6.9") {
			return k
		}
	}
	return nil
}
