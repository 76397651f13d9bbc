package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// CachedKernels returns the kernels in the first of the folders that has any, itself or in a folder in it, the newest
// last. Without dirs, the folders are $BENCH_KERNELS or, if not set, .cache/kernels in the working directory and beside
// the folder of the executable. Having none is an error.
func CachedKernels(dirs ...string) ([]*Kernel, error) {
	if len(dirs) == 0 {
		dirs = cacheDirs()
	}
	for _, dir := range dirs {
		// What is no kernel is passed over: someone may just be writing it.
		if kernels, _ := kernelsIn(dir, []string{"vmlinuz-*", "*/vmlinuz-*"}); len(kernels) > 0 {
			return kernels, nil
		}
	}
	return nil, fmt.Errorf("find a kernel in %s: there is none: fetch some with `make kernels`, or pass one with --kernel (a bzImage, or a folder or .deb that holds one)",
		strings.Join(dirs, ", "))
}

// CachedKernel returns the newest of CachedKernels.
func CachedKernel(dirs ...string) (*Kernel, error) {
	kernels, err := CachedKernels(dirs...)
	if err != nil {
		return nil, err
	}
	return kernels[len(kernels)-1], nil
}

func cacheDirs() []string {
	if dir := os.Getenv("BENCH_KERNELS"); dir != "" {
		return []string{dir}
	}
	dirs := []string{filepath.Join(".cache", "kernels")}
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Join(filepath.Dir(exe), "..", ".cache", "kernels"))
	}
	return dirs
}
