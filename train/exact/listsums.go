package exact

import (
	"context"
	"math"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/sample"
)

// listSums is what the lists of a block of nodes were reduced to by one reduction, as far as their
// parts came. A softmax is summed up as its parts come too: what each of them gives is weighed by
// the sum of its exponentials, whose logarithm is kept (Milakov and Gimelshein, "Online normalizer
// calculation for softmax").
type listSums struct {
	pull    *program.Pull
	columns int       // width of what weights need of rows
	width   int       // and of what they need of lists
	rows    []float32 // (block, pull.Cols)
	own     []float32 // (block, width)
	// logs are, with a softmax, the logarithms of sums, (block, heads); with a maximum they are
	// zero once there was an entry.
	logs []float32
	part []float32 // what a part gives: (chunk, pull.Cols)
}

// sumFloats is what the sums take for each node.
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

// sizeSums plans the memory of the sums of a block.
func (l *layerPass) sizeSums(c *carver, block int) (first int) {
	first = len(c.at)
	pulls, columns, own := l.layer.Pulls(), l.layer.ColumnCols(), l.layer.OwnCols()
	weighted := 0
	for i := range pulls {
		s := listSums{pull: &pulls[i]}
		if s.pull.Scored {
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

// takeSums takes it.
func (l *layerPass) takeSums(c *carver, first int) {
	for i := range l.sums {
		s, at := &l.sums[i], first+4*i
		s.rows, s.own, s.logs, s.part = c.take(at), c.take(at+1), c.take(at+2), c.take(at+3)
	}
}

// of are the sums of n nodes of the block.
func (s *listSums) of(first, n int) []float32 {
	return s.rows[first*s.pull.Cols : (first+n)*s.pull.Cols]
}

// clearSums begins with n nodes of the block.
func (l *layerPass) clearSums(first, n int) {
	for i := range l.sums {
		s := &l.sums[i]
		clear(s.of(first, n))
		for k := first * s.pull.Heads; k < (first+n)*s.pull.Heads; k++ {
			s.logs[k] = float32(math.Inf(-1))
		}
	}
}

// ownOf computes what weights need of the lists of a block of nodes.
func (l *layerPass) ownOf(ctx context.Context, nodes []sample.NodeID) error {
	if len(l.columns) == 0 {
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

// ownOfChunk is ownOf for a chunk.
func (l *layerPass) ownOfChunk(c *chunk) error {
	if len(l.columns) == 0 {
		return nil
	}
	if err := l.Backend.Begin(); err != nil {
		return err
	}
	own := l.layer.Own(l.Model.Machine(), l.host(c.x, l.src.dim()), l.host(c.norms, 1))
	for i := range l.sums {
		if s := &l.sums[i]; s.pull.Scored {
			l.Backend.Read(s.own[c.first*s.width:], own[0])
			own = own[1:]
		}
	}
	return l.Backend.Err()
}

// accumulate adds to the sums of nodes of the block, from first on, what the entries of a part
// give. Rows are those at hand, which the columns are of.
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
		switch {
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
		reduced := w.Reduced(m, s.pull, table, weights, lists)
		part := s.part[:reduced.Len()]
		l.Backend.Read(part, reduced)
		if err := l.Backend.Err(); err != nil {
			return err
		}
		for k, d := range p.deg {
			if entries := p.off[k+1] - p.off[k]; entries > 0 {
				s.merge(first+k, part[k*s.pull.Cols:(k+1)*s.pull.Cols], sums, k,
					float32(entries)/float32(d))
			}
		}
	}
	return nil
}

// logSums are the logarithms of the sums of the exponentials of scores, by list and head.
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

// merge adds to the sums of a node what a part of its list gives, its k-th; share is the part's of
// the list's entries.
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

// merged are the shares that what was and what comes have in a softmax of both, whose logarithms of
// sums these are; was becomes that of both.
func merged(was *float32, now float32) (old, fresh float32) {
	a, b := float64(*was), float64(now)
	top := max(a, b)
	sum := math.Exp(a-top) + math.Exp(b-top)
	*was = float32(top + math.Log(sum))
	return float32(math.Exp(a-top) / sum), float32(math.Exp(b-top) / sum)
}
