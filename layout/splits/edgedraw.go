package splits

import (
	"fmt"
	"math"

	"gdb/internal/rng"
	"gdb/layout/edgefile"
)

// train is the place of the split train in edgefile.Splits, and so the number of the split.
const train = 0

// EdgeDraw decides at random which split an edge is in, by the seed and the pair of nodes that it
// connects. So all edges between two nodes are in one split: an edge and its reverse, and edges of
// several types or times. If the reverse of a test edge were in train, a model that has learned
// train would know the edge, whether the graph is called undirected or not.
type EdgeDraw struct {
	key    uint64
	below  [2]uint64 // a draw below below[i] is in split i
	last   int       // the last split with a share
	shares Shares
}

// ParseEdgeShares reads "random=85/5/10". All edges are in a split: the shares sum to 100.
func ParseEdgeShares(text string) (s Shares, err error) {
	if s, err = ParseShares(text); err != nil {
		return s, err
	}
	if math.Abs(s[0]+s[1]+s[2]-100) > 1e-6 {
		return s, fmt.Errorf("split %q: the shares sum to %g, want 100, since every edge is in a "+
			"split", text, s[0]+s[1]+s[2])
	}
	return s, nil
}

// NewEdgeDraw returns the draw of a seed.
func NewEdgeDraw(shares Shares, seed uint64) *EdgeDraw {
	d := &EdgeDraw{key: rng.Key(seed, 0x65646765), shares: shares}
	d.below[0] = threshold(shares[0])
	d.below[1] = threshold(shares[0] + shares[1])
	for i, share := range shares {
		if share > 0 {
			d.last = i
		}
	}
	return d
}

// threshold returns the number that this percentage of 64-bit draws is below.
func threshold(percent float64) uint64 {
	if percent >= 100-1e-9 {
		return math.MaxUint64
	}
	return uint64(percent/100*(1<<32)) << 32
}

// Names returns the splits that have a share.
func (d *EdgeDraw) Names() (names []string) {
	for i, share := range d.shares {
		if share > 0 {
			names = append(names, edgefile.Splits[i])
		}
	}
	return names
}

// split returns the number of the split of edges between two nodes.
func (d *EdgeDraw) split(a, b uint32) int {
	pair := uint64(min(a, b))<<32 | uint64(max(a, b))
	at := rng.Sub(rng.Sub(d.key, pair), 0)
	for i := range d.last {
		if at < d.below[i] {
			return i
		}
	}
	return d.last
}
