package kernel

// segmentPart is how many values a part of a segment kernel reads, about: a segment is never cut.
const segmentPart = 64 << 10

// SegmentMean writes to row i of out(M,d) the mean of the rows of x(·,d) whose numbers are
// idx[off[i]:off[i+1]], and zeros if there are none. off has M+1 ascending entries.
func SegmentMean(p *Pool, out, x []float32, off, idx []uint32, d int) {
	segmentSum(p, out, x, Lists{Off: off, Idx: idx, Cols: d}, true)
}

// SegmentSum writes the sums of the same rows.
func SegmentSum(p *Pool, out, x []float32, off, idx []uint32, d int) {
	segmentSum(p, out, x, Lists{Off: off, Idx: idx, Cols: d}, false)
}

func segmentSum(p *Pool, out, x []float32, of Lists, mean bool) {
	segments := len(of.Off) - 1
	out = out[:max(0, segments)*of.Cols]
	if len(out) == 0 {
		return
	}
	rows := len(x) / of.Cols
	p.Span(segments, SegmentsPart(of.Off, of.Cols), func(lo, hi int) {
		CheckSegments(of.Off[lo:hi+1], of.Idx, rows)
		sumOf(out[lo*of.Cols:hi*of.Cols], x, of.Off[lo:hi+1], of.Idx, of.Cols, mean)
	})
}

// SegmentsPart is how many segments make a part, by their mean length.
func SegmentsPart(off []uint32, d int) int {
	segments := len(off) - 1
	length := int(off[segments]-off[0])/segments + 1
	return max(1, segmentPart/max(1, length*d))
}

// CheckSegments panics unless the segments ascend, lie in idx and name rows of x: assembly reads
// what they say. It costs under a hundredth of reading the rows.
func CheckSegments(off, idx []uint32, rows int) {
	checkOffsets(off)
	for _, r := range idx[off[0]:off[len(off)-1]] {
		if int(r) >= rows {
			panic("BUG: a segment names a row that is not there")
		}
	}
}

// checkOffsets panics unless off ascends.
func checkOffsets(off []uint32) {
	for i, o := range off[1:] {
		if o < off[i] {
			panic("BUG: segment offsets descend")
		}
	}
}
