package backend_test

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/program"
)

// ExampleBackend multiplies two matrices. An error of any of the operations would be that of Err.
func ExampleBackend() {
	be, err := backend.OpenCPU(backend.Options{Workers: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = be.Close() }()
	if err := be.Begin(); err != nil {
		fmt.Println(err)
		return
	}
	a := be.Host([]float32{1, 2, 3, 4}, 2, 2)
	b := be.Host([]float32{0, 1, 1, 0}, 2, 2)
	c := be.Scratch(2, 2)
	be.Run(program.Named("matmul"), &backend.Operands{Out: c, In: [4]backend.Tensor{a, b}})
	out := make([]float32, c.Len())
	be.Read(out, c)
	fmt.Println(out, be.Err())
	// Output:
	// [2 1 4 3] <nil>
}
