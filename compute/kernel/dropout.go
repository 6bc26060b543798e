package kernel

import (
	"math"
	"math/bits"
)

// dropoutBlock is how many positions share the two words of a key. Blocks keep the counter of a
// draw in 32 bits, which vectors multiply fast.
const (
	dropoutBits  = 20
	dropoutBlock = 1 << dropoutBits
)

// Dropout zeroes each value of y with probability rate and scales the others by 1/(1-rate), in
// place (inverted dropout). Whether the value at position i is dropped is a function of key and i;
// y begins at the position first. It is its own gradient. The rate is rounded to a multiple of
// 2^-24; it must be at least 0 and below 1.
func Dropout(p *Pool, y []float32, first int, rate float32, key uint64) {
	m := newMask(rate, key)
	if rate == 0 {
		return
	}
	p.Span(len(y), flatPart, func(lo, hi int) { m.apply(y[lo:hi], first+lo, &DropoutPlan{}) })
}

// mask says which values are dropped.
type mask struct {
	key       uint64
	threshold uint32
	scale     float32
	drop      func(y []float32, d *DropoutPlan, first uint32)
}

func newMask(rate float32, key uint64) mask {
	if !(rate >= 0 && rate < 1) {
		panic("BUG: a dropout rate must be at least 0 and below 1")
	}
	return mask{key: key, threshold: uint32(math.Round(float64(rate) * (1 << 24))),
		scale: 1 / (1 - rate), drop: level().dropout}
}

// apply drops values of y, which begins at the position first. d is scratch memory.
func (m *mask) apply(y []float32, first int, d *DropoutPlan) {
	for len(y) > 0 {
		at, left := m.plan(first, d)
		n := min(len(y), left)
		m.drop(y[:n], d, at)
		y, first = y[n:], first+n
	}
}

// plan makes the plan of the block that the position first is in, and returns where it is in that
// and how many positions follow there, itself included.
func (m *mask) plan(first int, d *DropoutPlan) (at uint32, left int) {
	block := first >> dropoutBits // rounded down for padding, whose positions are negative
	a, b := bits.Mul64(m.key^uint64(block)*0xa0761d6478bd642f^0xe7037ed1a0b428db,
		0x8ebc6af09c88c6e3)
	*d = DropoutPlan{add: uint32(a ^ b), xor: uint32((a ^ b) >> 32), threshold: m.threshold,
		scale: m.scale}
	at = uint32(first & (dropoutBlock - 1))
	return at, dropoutBlock - int(at)
}

// PlanDropout is for kernels of other packages, which drop values out as Dropout does: it makes the
// plan of the draws from the position first on, and returns the position by which they draw, and
// for how many values the plan holds.
func PlanDropout(d *DropoutPlan, first int, rate float32, key uint64) (at uint32, left int) {
	m := newMask(rate, key)
	return m.plan(first, d)
}

// droppedFloats is about how many values are dropped at a time to average them: they stay in the
// second-level cache.
const droppedFloats = 16 << 10

// DroppedWords returns the scratch memory of SegmentMeanDropout for each worker, in words of 4
// bytes, given the rows of the longest segment.
func DroppedWords(longest, d int) int {
	rows := max(1, droppedFloats/d, longest)
	return rows*d + rows + segmentPart/d + 4
}

// SegmentMeanDropout is SegmentMean of rows that went through Dropout, with the same bits, where x
// stays as it is: the row of list entry e is x's row idx[e], and counts as row at[e] of the matrix
// that was dropped out. It takes scratch memory: see DroppedWords.
func SegmentMeanDropout(p *Pool, out, x []float32, of Lists, drop Drop) {
	segments := len(of.Off) - 1
	out = out[:max(0, segments)*of.Cols]
	if len(out) == 0 {
		return
	}
	of.At = of.At[:len(of.Idx)]
	m, rows := newMask(drop.Rate, drop.Key), len(x)/of.Cols
	p.Span(segments, SegmentsPart(of.Off, of.Cols), func(lo, hi int) {
		CheckSegments(of.Off[lo:hi+1], of.Idx, rows)
		m.means(p, out[lo*of.Cols:hi*of.Cols], x, Lists{Off: of.Off[lo : hi+1], Idx: of.Idx,
			At: of.At, Cols: of.Cols})
	})
}

// means computes the means of some segments, as many at a time as fit.
func (m *mask) means(p *Pool, out, x []float32, of Lists) {
	room := max(1, droppedFloats/of.Cols)
	for i := range len(of.Off) - 1 {
		room = max(room, int(of.Off[i+1]-of.Off[i]))
	}
	rows, words := p.TakeFloats(room*of.Cols), p.TakeWords(len(of.Off)+room+1)
	ends, count := words[:len(of.Off)], words[len(of.Off):]
	for i := range count {
		count[i] = uint32(i)
	}
	ends[0] = 0
	var plan DropoutPlan
	for first, end := 0, 0; first < len(of.Off)-1; first = end {
		for end = first; end < len(of.Off)-1 && int(of.Off[end+1]-of.Off[first]) <= room; end++ {
			ends[end-first+1] = of.Off[end+1] - of.Off[first]
		}
		list, n := of.Idx[of.Off[first]:of.Off[end]], int(of.Off[end]-of.Off[first])
		// Sums of one row each: the kernel waits for many rows at once, a loop of copies for one.
		sumOf(rows[:n*of.Cols], x, count[:n+1], list, of.Cols, false)
		for i, r := range of.At[of.Off[first]:of.Off[end]] {
			m.apply(rowOf(rows, i, of.Cols), int(r)*of.Cols, &plan)
		}
		sumOf(out[first*of.Cols:end*of.Cols], rows, ends[:end-first+1], count, of.Cols, true)
	}
	p.GiveWords(words)
	p.GiveFloats(rows)
}
