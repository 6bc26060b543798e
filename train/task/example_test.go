package task_test

import (
	"fmt"

	"gdb/train/task"
)

// ExampleF1 is the harmonic mean of precision and recall.
func ExampleF1() {
	f, ok := task.F1(6, 2, 2) // six hits, two that were wrong, two that were missed
	fmt.Println(f, ok)
	_, ok = task.F1(0, 0, 0)
	fmt.Println("without any:", ok)
	// Output:
	// 0.75 true
	// without any: false
}
