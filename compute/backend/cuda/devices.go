package cuda

import (
	"fmt"

	"gdb/compute/backend"
)

// Chosen returns the name of what backend.Auto stands for here: it opens the devices of those
// numbers, and closes them. Other names stand for themselves.
func Chosen(name string, devices ...int) string {
	if name != backend.Auto {
		return name
	}
	for _, number := range devices {
		be, err := Open(backend.Options{Device: number})
		if err != nil || be.Close() != nil {
			return backend.CPU
		}
	}
	return backend.CUDA
}

// OpenNamed opens a backend by name: backend.CPU or backend.CUDA.
func OpenNamed(name string, opt backend.Options) (backend.Backend, error) {
	switch name {
	case backend.CPU:
		return backend.OpenCPU(opt)
	case backend.CUDA:
		return Open(opt)
	}
	return nil, fmt.Errorf("train: unknown backend %q: known are %s and %s", name, backend.CPU,
		backend.CUDA)
}
