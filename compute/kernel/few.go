package kernel

// The products of this file have few columns, such as one for each head of attention, and read a
// long A: it is read once, row after row, as fast as memory gives it. A tile of C would read some
// rows beside each other, a value of each at a time, and leave most lanes of its vectors empty.

const (
	// fewOnce is how many columns are computed at once. A is read again for the next, in parts that
	// a cache keeps.
	fewOnce = 4
	// fewColumns is the most columns that are few, and fewStepsLeast the shortest row of A or C for
	// which they are: below it, adding up lanes and masking take as long as the products.
	fewColumns    = 8
	fewStepsLeast = 32
)

// isFew reports whether n columns of k values are computed by these kernels.
func isFew(k, n int) bool { return 0 < n && n <= fewColumns && k >= fewStepsLeast }

// fewWords returns the memory of fewOnce columns of k values as packFew packs them.
func (t *tileSet) fewWords(k int) int { return partsOf(k, t.lanes) * t.lanes * fewOnce }

// packFew packs columns of k values, some a vector long of each beside each other, and zeros where
// there is no value. Value i of column j is at i*as.step + j*as.row.
func (t *tileSet) packFew(packed, b []float32, k, columns int, as strides) {
	clear(packed)
	for j := range columns {
		for i := range k {
			packed[t.fewAt(i, j)] = b[i*as.step+j*as.row]
		}
	}
}

// fewAt returns where value i of column j is packed.
func (t *tileSet) fewAt(i, j int) int {
	return (i/t.lanes*fewOnce+j)*t.lanes + i%t.lanes
}

// multiplyFew is C(m,n) (+)= A(m,k)·B for few columns n, whose values are in b as strides say.
func (t *tileSet) multiplyFew(p *Pool, c, a view, b []float32, as strides, s Shape) {
	if s.M == 0 {
		return
	}
	words := t.fewWords(s.K)
	packed := p.TakeFloats(partsOf(s.N, fewOnce) * words)
	for j := 0; j < s.N; j += fewOnce {
		t.packFew(packed[j/fewOnce*words:][:words], b[j*as.row:], s.K, min(fewOnce, s.N-j), as)
	}
	p.Span(s.M, max(1, segmentPart/s.K), func(lo, hi int) {
		for j := 0; j < s.N; j += fewOnce {
			t.few(hi-lo, s.K, &a.x[lo*a.stride], uintptr(a.stride)*4, &packed[j/fewOnce*words],
				&c.x[lo*c.stride+j], uintptr(c.stride)*4, min(fewOnce, s.N-j), word(s.Add))
		}
	})
	p.GiveFloats(packed)
}

// fewSlabs returns how many rows of A(m,k) and B(m,n) are reduced to one partial C.
func fewSlabs(m, k, n int) int {
	return partsOf(m, max(1, min(m/slabRowsMin, slabsMax, slabFloatsMax/(k*n))))
}

// reduceFew is C(k,n) (+)= Aᵀ·B for A(m,k) and few columns n: partial sums of slabs of rows, which
// are added in the order of the rows.
func (t *tileSet) reduceFew(p *Pool, c, a, b view, s Shape) {
	rows := fewSlabs(s.M, s.K, s.N)
	words := t.fewWords(s.K)
	all := words * partsOf(s.N, fewOnce)
	sums := p.TakeFloats(partsOf(s.M, rows) * all)
	p.Span(s.M, rows, func(lo, hi int) {
		sum := sums[lo/rows*all:][:all]
		clear(sum)
		for i := lo; i < hi; i += blockRows {
			for j := 0; j < s.N; j += fewOnce {
				last := min(fewOnce, s.N-j) - 1 // what no column is for has the last one's sums
				t.fewTA(min(blockRows, hi-i), s.K, &a.x[i*a.stride], uintptr(a.stride)*4,
					&b.x[i*b.stride+j], uintptr(b.stride)*4, uintptr(min(1, last))*4,
					uintptr(min(2, last))*4, uintptr(min(3, last))*4, &sum[j/fewOnce*words])
			}
		}
	})
	total := sums[:all]
	for at := all; at < len(sums); at += all {
		level().add(total, sums[at:at+all])
	}
	for i := range s.K {
		row := c.row(i, s.N)
		for j := range row {
			v := total[j/fewOnce*words+t.fewAt(i, j%fewOnce)]
			if s.Add {
				v += row[j]
			}
			row[j] = v
		}
	}
	p.GiveFloats(sums)
}

const (
	// slabRowsMin is how many rows of A and B are reduced to one partial C at least: at fewer,
	// writing and adding the partial sums costs more than 4 % of the products.
	slabRowsMin = 1024
	// slabsMax and slabFloatsMax bound the partial sums.
	slabsMax      = 32
	slabFloatsMax = 4 << 20
	// partsMin is how many parts a product is cut into at least, so that workers end together.
	partsMin = 8
	// blockRows is how many rows of A and B are packed to stay in the second-level cache, and a
	// panel of B in the first-level cache, while the tiles of C pass by.
	blockRows = 160
	// narrowColumns is the widest A that is read where it is: a tile takes one or two lines of a
	// row, which the second-level cache has by then. Wider rows are too far apart.
	narrowColumns = 512
)
