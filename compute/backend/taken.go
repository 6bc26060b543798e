package backend

import "gdb/compute/kernel"

// SegmentFloats is the scratch of Segments whose gradient is asked for, on the CPU; weights says
// that it is asked for with weights of entries.
func SegmentFloats(rows, entries, lists int, weights bool) int {
	if weights {
		return kernel.TransposedEntryWords(rows, entries, lists)
	}
	return kernel.TransposedWords(rows, entries, lists)
}

// Taken is what operations take of scratch memory besides their operands, on the CPU, in words of 4
// bytes: Once, and for each worker, of a product of matrices and of an operation over lists. What
// a worker sums up before it is rounded to bfloat16 is memory of lists, of products too.
type Taken struct{ Once, Product, List int }

// Or is what is taken by either of two, one after the other.
func (t Taken) Or(o Taken) Taken {
	return Taken{max(t.Once, o.Once), max(t.Product, o.Product), max(t.List, o.List)}
}

// Bytes returns the memory that is taken with a number of threads.
func (t Taken) Bytes(threads int) int64 {
	return 4 * (int64(t.Once) + int64(threads)*int64(t.Product+t.List))
}
