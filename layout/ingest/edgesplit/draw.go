// Package edgesplit deals the edges of an ingest to train, val and test: as the source says, or by
// chance. It writes the files of edges of these splits, tells which edges the lists have, and
// counts what no edge of train has.
package edgesplit

import (
	"fmt"
	"math"

	"gdb/internal/rng"
	"gdb/layout/edgefile"
	"gdb/layout/splits"
)

// train, val and test are numbers of splits, their places in edgefile.Splits.
const train = 0

// Draw decides by chance which split an edge is in: a function of the seed, the ends and the type
// of the edge, so that edges with the same ends and type are in one split, whatever their order.
type Draw struct {
	key        uint64
	undirected bool      // an edge and its reverse are one
	below      [2]uint64 // a draw below below[i] is of split i
	last       int       // the last split that has a share
	shares     splits.Shares
}

// ParseShares reads "random=85/5/10". All edges are in a split: the shares sum to 100.
func ParseShares(text string) (s splits.Shares, err error) {
	if s, err = splits.ParseShares(text); err != nil {
		return s, err
	}
	if math.Abs(s[0]+s[1]+s[2]-100) > 1e-6 {
		return s, fmt.Errorf("split %q: the shares sum to %g, want 100, since every edge is in a "+
			"split", text, s[0]+s[1]+s[2])
	}
	return s, nil
}

// NewDraw returns the draw of a seed. undirected says that an edge and its reverse go together.
func NewDraw(shares splits.Shares, seed uint64, undirected bool) *Draw {
	d := &Draw{key: rng.Key(seed, 0x65646765), undirected: undirected, shares: shares}
	d.below[0] = threshold(shares[0])
	d.below[1] = threshold(shares[0] + shares[1])
	for i, share := range shares {
		if share > 0 {
			d.last = i
		}
	}
	return d
}

// threshold is what the given percentage of 64-bit draws is below.
func threshold(percent float64) uint64 {
	if percent >= 100-1e-9 {
		return math.MaxUint64
	}
	return uint64(percent/100*(1<<32)) << 32
}

// Names are the splits that have a share.
func (d *Draw) Names() (names []string) {
	for i, share := range d.shares {
		if share > 0 {
			names = append(names, edgefile.Splits[i])
		}
	}
	return names
}

// split is the number of the split of an edge.
func (d *Draw) split(src, dst uint32, typ uint16) int {
	if d.undirected && src > dst {
		src, dst = dst, src
	}
	at := rng.Sub(rng.Sub(d.key, uint64(src)<<32|uint64(dst)), uint64(typ))
	for i := range d.last {
		if at < d.below[i] {
			return i
		}
	}
	return d.last
}
