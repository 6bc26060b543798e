package kernel

import "slices"

// Cut says where the rows of a matrix lie that are cut into pieces of Dim values: row r has the
// rows At[Off[r]:Off[r+1]] of a table, side by side, and zeros after them.
type Cut struct {
	Off, At []uint32
	Dim     int
}

// piece returns the place of piece j of row r in the table; false if the row has fewer.
func (c *Cut) piece(r uint32, j int) (at uint32, ok bool) {
	if i := c.Off[r] + uint32(j); i < c.Off[r+1] {
		return c.At[i], true
	}
	return 0, false
}

// CutWords returns the scratch memory of SegmentMeanCut for each worker, in words of 4 bytes, given
// the rows of the longest segment.
func CutWords(longest, d int) int {
	return max(droppedFloats, longest*(d+2)) + max(droppedFloats, d+2) + 2
}

// SegmentMeanCut is SegmentMeanDropout, or with a rate of 0 SegmentMean, of the rows of a matrix of
// of.Cols columns that is cut, with the same bits: of.Idx has the numbers of rows, and of.At is not
// read. It takes scratch memory: see CutWords.
func SegmentMeanCut(p *Pool, out, table []float32, of Lists, cut Cut, drop Drop) {
	segments := len(of.Off) - 1
	out = out[:max(0, segments)*of.Cols]
	if len(out) == 0 {
		return
	}
	CheckSegments(cut.Off, cut.At, len(table)/cut.Dim)
	m := newMask(drop.Rate, drop.Key)
	p.Span(segments, SegmentsPart(of.Off, of.Cols), func(lo, hi int) {
		CheckSegments(of.Off[lo:hi+1], of.Idx, len(cut.Off)-1)
		m.meansCut(p, out[lo*of.Cols:hi*of.Cols], table, Lists{Off: of.Off[lo : hi+1], Idx: of.Idx,
			Cols: of.Cols}, cut)
	})
}

// cutScratch is the memory in which some segments are averaged, a piece of each row at a time.
type cutScratch struct {
	rows, part  []float32 // pieces, and means of them
	list, count []uint32  // places of pieces, and 0, 1, 2, …
	ends, most  []uint32  // by segment: where its pieces end, and the most that a row has
}

// meansCut computes the means of some segments, as many at a time as fit.
func (m *mask) meansCut(p *Pool, out, table []float32, of Lists, cut Cut) {
	room := max(1, droppedFloats/(cut.Dim+2))
	lists := room
	for i := range len(of.Off) - 1 {
		room = max(room, int(of.Off[i+1]-of.Off[i]))
	}
	floats, words := p.TakeFloats((room+lists)*cut.Dim), p.TakeWords(2*room+2*lists+2)
	s := cutScratch{rows: floats[:room*cut.Dim], part: floats[room*cut.Dim:], list: words[:room],
		count: words[room : 2*room+1], ends: words[2*room+1:][:lists+1],
		most: words[2*room+lists+2:]}
	for i := range s.count {
		s.count[i] = uint32(i)
	}
	for first, end := 0, 0; first < len(of.Off)-1; first = end {
		pieces := uint32(0)
		for end = first; end < min(first+lists, len(of.Off)-1) &&
			int(of.Off[end+1]-of.Off[first]) <= room; end++ {
			s.most[end-first] = 0
			for _, r := range of.Idx[of.Off[end]:of.Off[end+1]] {
				s.most[end-first] = max(s.most[end-first], cut.Off[r+1]-cut.Off[r])
			}
			pieces = max(pieces, s.most[end-first])
		}
		some := Lists{Off: of.Off[first : end+1], Idx: of.Idx, Cols: of.Cols}
		rows := out[first*of.Cols : end*of.Cols]
		for j := 0; j*cut.Dim < of.Cols; j++ {
			if j >= int(pieces) {
				clearFrom(rows, j*cut.Dim, of.Cols)
				break
			}
			m.meanPiece(&s, rows, table, some, cut, j)
		}
	}
	p.GiveWords(words)
	p.GiveFloats(floats)
}

// clearFrom zeroes the columns of rows from one on.
func clearFrom(rows []float32, from, cols int) {
	for row := range slices.Chunk(rows, cols) {
		clear(row[from:])
	}
}

// meanPiece writes the means of piece j of the rows of segments.
func (m *mask) meanPiece(s *cutScratch, out, table []float32, of Lists, cut Cut, j int) {
	n, lists, whole := 0, len(of.Off)-1, m.threshold == 0
	for i := range lists {
		for _, r := range of.Idx[of.Off[i]:of.Off[i+1]] {
			if j >= int(s.most[i]) {
				break
			}
			at, ok := cut.piece(r, j)
			s.list[n], whole = at, whole && ok
			n++
		}
		s.ends[i+1] = uint32(n)
	}
	s.ends[0] = 0
	x, list, dim := table, s.list[:n], cut.Dim
	if !whole {
		sumOf(s.rows[:n*dim], table, s.count[:n+1], list, dim, false)
		m.dropPieces(s, of, cut, j)
		x, list = s.rows, s.count[:n]
	}
	sumOf(s.part[:lists*dim], x, s.ends[:lists+1], list, dim, true)
	from := j * dim
	for i := range lists {
		copy(rowOf(out, i, of.Cols)[from:], s.part[i*dim:][:min(dim, of.Cols-from)])
	}
}

// dropPieces drops out piece j of the rows of segments, and zeroes those that rows do not have.
func (m *mask) dropPieces(s *cutScratch, of Lists, cut Cut, j int) {
	n, dim := 0, cut.Dim
	width := min(dim, of.Cols-j*dim)
	var plan DropoutPlan
	for i := range len(of.Off) - 1 {
		for _, r := range of.Idx[of.Off[i]:of.Off[i+1]] {
			if j >= int(s.most[i]) {
				break
			}
			if row := rowOf(s.rows, n, dim); cut.Off[r]+uint32(j) >= cut.Off[r+1] {
				clear(row)
			} else if m.threshold > 0 {
				m.apply(row[:width], int(r)*of.Cols+j*dim, &plan)
			}
			n++
		}
	}
}
