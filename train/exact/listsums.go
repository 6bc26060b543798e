package exact

import (
	"context"
	"math"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/sample"
)

// listSums holds what one reduction has made of the lists of a block of nodes so far, since lists
// come in parts. A softmax is reduced part by part too: the result of each part is weighted by the
// sum of its exponentials, of which the logarithm is kept (Milakov and Gimelshein, "Online
// normalizer calculation for softmax").
type listSums struct {
	pull    *program.Pull
	columns int       // number of values that weights need of each row
	width   int       // number of values that they need of each list
	rows    []float32 // (block, pull.Cols)
	own     []float32 // (block, width)
	// logs holds, for a softmax, the logarithms of sums, (block, heads). For a maximum it is zero
	// once there was an entry.
	logs []float32
	part []float32 // result of one part: (chunk, pull.Cols)
}

// sumFloats returns how many floats the sums take for each node.
func (l *layerPass) sumFloats() (n int) {
	pulls := l.layer.Pulls()
	for i := range pulls {
		n += 2*pulls[i].Cols + pulls[i].Heads
	}
	for _, cols := range l.layer.OwnCols() {
		n += cols
	}
	return max(n, 1)
}

// blockFloats returns how many floats the sums of a block take for each node.
func (l *layerPass) blockFloats() int {
	n := l.sumFloats()
	for _, pull := range l.layer.Pulls() {
		n -= pull.Cols // of listSums.part
	}
	return n
}

// sizeSums plans the memory for the sums of a block. It returns the number of the first piece.
func (l *layerPass) sizeSums(c *carver, block int) (first int) {
	first = len(c.at)
	pulls, columns, own := l.layer.Pulls(), l.layer.ColumnCols(), l.layer.OwnCols()
	weighted := 0
	for i := range pulls {
		s := listSums{pull: &pulls[i]}
		switch {
		case s.pull.Segmented:
			s.width = own[0]
		case s.pull.Scored:
			s.columns, s.width = columns[weighted], own[weighted]
			weighted++
		}
		c.add(block * s.pull.Cols)
		c.add(block * s.width)
		c.add(block * s.pull.Heads)
		c.add(l.chunk * s.pull.Cols)
		l.sums = append(l.sums, s)
	}
	return first
}

// takeSums takes the memory that sizeSums planned.
func (l *layerPass) takeSums(c *carver, first int) {
	for i := range l.sums {
		s, at := &l.sums[i], first+4*i
		s.rows, s.own, s.logs, s.part = c.take(at), c.take(at+1), c.take(at+2), c.take(at+3)
	}
}

// of returns the sums of n nodes of the block, from node first on.
func (s *listSums) of(first, n int) []float32 {
	return s.rows[first*s.pull.Cols : (first+n)*s.pull.Cols]
}

// clearSums resets the sums of n nodes of the block, from node first on.
func (l *layerPass) clearSums(first, n int) {
	for i := range l.sums {
		s := &l.sums[i]
		clear(s.of(first, n))
		for k := first * s.pull.Heads; k < (first+n)*s.pull.Heads; k++ {
			s.logs[k] = float32(math.Inf(-1))
		}
	}
}

// ownOf computes what weights need of the list of each node of a block.
func (l *layerPass) ownOf(ctx context.Context, nodes []sample.NodeID) error {
	if !l.layer.ReadsOwn() {
		return nil
	}
	for first := 0; first < len(nodes); first += l.chunk {
		part := nodes[first:min(first+l.chunk, len(nodes))]
		c, err := l.read(ctx, part, first)
		if err != nil {
			return err
		}
		if err := l.ownOfChunk(c); err != nil {
			return err
		}
	}
	return nil
}

// ownOfChunk does the work of ownOf for one chunk.
func (l *layerPass) ownOfChunk(c *chunk) error {
	if !l.layer.ReadsOwn() {
		return nil
	}
	if err := l.Backend.Begin(); err != nil {
		return err
	}
	own := l.layer.Own(l.Model.Machine(), l.host(c.x, l.src.dim()), l.host(c.norms, 1))
	for i := range l.sums {
		if s := &l.sums[i]; s.width > 0 {
			l.Backend.Read(s.own[c.first*s.width:], own[0])
			own = own[1:]
		}
	}
	return l.Backend.Err()
}

// accumulate reduces the entries of a part and merges the results into the sums of the block's
// nodes, from node first on, or into those of the nodes that the part names. rows are the rows in
// memory, to which l.columns belong.
func (l *layerPass) accumulate(first int, rows []float32, p part) error {
	if err := l.Backend.Begin(); err != nil {
		return err
	}
	m, w, n := l.Model.Machine(), l.layer, len(p.deg)
	table := l.tableOf(rows)
	lists := l.Backend.Segments(backend.Lists{Off: p.off, Idx: p.nbrs})
	scored := 0
	for i := range l.sums {
		s, weights, sums := &l.sums[i], backend.Tensor{}, []float32(nil)
		reduced := backend.Tensor{}
		switch {
		case s.pull.Segmented:
			of := l.segment(rows, l.Backend.Host(s.own[first*s.width:], n, s.width), p)
			sums = l.logSums(of.Scores(), p.off)
			reduced = of.Reduced()
		case s.pull.Scored:
			column := l.Backend.Host(l.columns[scored], table.Rows, s.columns)
			own := l.Backend.Host(s.own[first*s.width:], n, s.width)
			weights = w.Weights(m, s.pull, column, own, p.edges, lists)
			scored++
			if s.pull.Softmax {
				sums = l.logSums(weights, p.off)
				w.Softmax(m, weights, lists)
			}
		case s.pull.Weighted:
			weights = w.Weights(m, s.pull, backend.Tensor{}, backend.Tensor{}, p.edges, lists)
		}
		if !s.pull.Segmented {
			reduced = w.Reduced(m, s.pull, table, weights, lists)
		}
		part := s.part[:reduced.Len()]
		l.Backend.Read(part, reduced)
		if err := l.Backend.Err(); err != nil {
			return err
		}
		for k, d := range p.deg {
			node := first + k
			if p.of != nil {
				node = int(p.of[k])
			}
			if entries := p.off[k+1] - p.off[k]; entries > 0 {
				s.merge(node, part[k*s.pull.Cols:(k+1)*s.pull.Cols], sums, k,
					float32(entries)/float32(d))
			}
		}
	}
	return nil
}

// logSums returns the logarithms of the sums of the exponentials of scores, for each list and head.
func (l *layerPass) logSums(scores backend.Tensor, off []uint32) []float32 {
	heads := scores.Cols
	values := make([]float32, scores.Len())
	l.Backend.Read(values, scores)
	out := make([]float32, (len(off)-1)*heads)
	for i := range len(off) - 1 {
		for h := range heads {
			top, sum := math.Inf(-1), 0.0
			for e := off[i]; e < off[i+1]; e++ {
				top = max(top, float64(values[int(e-off[0])*heads+h]))
			}
			for e := off[i]; e < off[i+1]; e++ {
				sum += math.Exp(float64(values[int(e-off[0])*heads+h]) - top)
			}
			out[i*heads+h] = float32(top + math.Log(sum))
		}
	}
	return out
}

// merge adds the result of part k to the sums of a node; share is the part of the list's entries
// that it covers.
func (s *listSums) merge(node int, part, logSums []float32, k int, share float32) {
	row := s.of(node, 1)
	switch {
	case s.pull.Softmax:
		d := s.pull.Cols / s.pull.Heads
		for h := range s.pull.Heads {
			was, now := &s.logs[node*s.pull.Heads+h], logSums[k*s.pull.Heads+h]
			old, fresh := merged(was, now)
			for c := h * d; c < (h+1)*d; c++ {
				row[c] = old*row[c] + fresh*part[c]
			}
		}
	case s.pull.Reduce == program.Max:
		seen := s.logs[node] == 0
		s.logs[node] = 0
		for c, v := range part {
			if !seen || v > row[c] {
				row[c] = v
			}
		}
	case s.pull.Reduce == program.Sum:
		for c, v := range part {
			row[c] += v
		}
	default:
		for c, v := range part {
			row[c] += share * v
		}
	}
}

// merged returns the shares that an earlier and a new part have in a softmax of both, given the
// logarithms of their sums. It sets was to the logarithm of the sum of both.
func merged(was *float32, now float32) (old, fresh float32) {
	a, b := float64(*was), float64(now)
	top := max(a, b)
	sum := math.Exp(a-top) + math.Exp(b-top)
	*was = float32(top + math.Log(sum))
	return float32(math.Exp(a-top) / sum), float32(math.Exp(b-top) / sum)
}
