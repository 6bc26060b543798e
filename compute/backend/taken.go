package backend

import (
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
)

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

// Bytes is the memory with so many threads.
func (t Taken) Bytes(threads int) int64 {
	return 4 * (int64(t.Once) + int64(threads)*int64(t.Product+t.List))
}

// TakenByMatMul is for b (k,n), and for each head of HeadMul. MatMulTB is that for b (n,k).
func TakenByMatMul(k, n int) Taken { return Taken{Once: kernel.PanelWords(k, n)} }

// TakenByMatMulTA is for a (m,k) and b (m,n), and for each head of HeadMulTA, where the rows of a
// have so many columns in all.
func TakenByMatMulTA(m, k, n, cols int) (t Taken) {
	t.Once, t.Product = kernel.ReductionWords(m, k, n, cols)
	return t
}

// TakenByColumnSum is for x (rows,n), TakenByLayerNormGrad too.
func TakenByColumnSum(rows, n int) Taken { return Taken{Once: kernel.ColumnWords(rows, n)} }

// TakenByLayerNormGrad is that of LayerNormGrad.
func TakenByLayerNormGrad(rows, n int) Taken { return Taken{Once: 2 * kernel.ColumnWords(rows, n)} }

// TakenByHalfMatMul is TakenByMatMul for operands of bfloat16, and b (k,heads·n). toHalf says that
// the result is too.
func TakenByHalfMatMul(k, n, heads int, toHalf bool) (t Taken) {
	t.Once, t.List = bf16.GEMMWords(k, n, heads, toHalf)
	return t
}

// TakenByHalfMatMulTA is for a (m,heads·k) and b (m,heads·n).
func TakenByHalfMatMulTA(m, k, n, heads int) (t Taken) {
	t.Once, t.Product = bf16.GEMMTAWords(m, k, n)
	if heads > 1 {
		t.Once += k * n
	}
	return t
}

// TakenByWidened is for a (m,heads·k) of bfloat16 and n columns for each head.
func TakenByWidened(m, k, n, heads int) (t Taken) {
	t.Once, t.Product = bf16.WidenedWords(m, k, n, heads)
	return t
}

// TakenByHalfElements is for rows of n values: what is computed of values, and the sum of so many
// rows.
func TakenByHalfElements(rows, n int) Taken {
	return Taken{Once: bf16.ColumnWords(rows, n), List: bf16.ElementWords(n)}
}

// TakenByHalfSegments is for sums of rows of bfloat16 over lists, to rows of d values; toHalf says
// that results are of bfloat16.
func TakenByHalfSegments(lists, entries, d int, toHalf bool) Taken {
	return Taken{Once: lists, List: bf16.SegmentWords(lists, entries, d, toHalf)}
}

// TakenByHalfDropped is for SegmentMeanDropout of lists with so many entries at most.
func TakenByHalfDropped(longest, lists, entries, d int) Taken {
	return Taken{List: bf16.DroppedWords(longest, d) +
		bf16.SegmentWords(lists, entries, d, true)}
}

// TakenByScores2GradList is for so many columns of att.
func TakenByScores2GradList(cols int) Taken { return Taken{Once: kernel.AttentionWords(cols)} }

// TakenByTypeRowsGrad is for a table of so many values.
func TakenByTypeRowsGrad(values int) Taken {
	return Taken{Once: kernel.TypeParts(values) * values}
}

// TakenBySegmentSumGrad is for so many lists.
func TakenBySegmentSumGrad(lists int) Taken { return Taken{Once: lists} }

// TakenBySoftmax is for so many heads.
func TakenBySoftmax(heads int) Taken { return Taken{List: heads} }

// TakenByEntryGrad is that of WeightedSumGrad and Scores2GradRow, for heads of so many columns.
func TakenByEntryGrad(heads, cols int) Taken {
	return Taken{List: kernel.EdgeGradWords(heads, cols)}
}

// TakenBySegmentMeanDropout is for lists of so many entries at most, and rows of so many columns.
func TakenBySegmentMeanDropout(entries, cols int) Taken {
	return Taken{List: kernel.DroppedWords(entries, cols)}
}
