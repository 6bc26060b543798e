package vectors

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/kv"
	"gdb/train/ivf"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

// These are the ways to compare vectors of nodes.
const (
	Cosine = ivf.Cosine
	Dot    = ivf.Dot
	Euclid = ivf.Euclid
)

// Closenesses lists the ways to compare.
func Closenesses() []string { return ivf.Closenesses() }

// Closeness returns the way that fits the run: Euclid if its decoder scores by
// distances, else Cosine.
func (v *Vectors) Closeness() string {
	if v.scorer.Decoder.Measure().IsDistance() {
		return Euclid
	}
	return Cosine
}

// Nearest returns the n nodes whose vectors are closest to that of a node, the closest first. The
// node itself is left out. by is one of Closenesses, or "" for Closeness. A vector of zeros has no
// angle: its closeness to all others is 0.
func (v *Vectors) Nearest(ctx context.Context, node kv.NodeID, by string, n int) ([]triples.Answer,
	error) {
	if by == "" {
		by = v.Closeness()
	}
	row, err := v.Row(ctx, node)
	if err != nil {
		return nil, err
	}
	find := rank.Nearest{Scorer: &v.scorer, Measure: decoder.Dot, Skip: []uint32{uint32(node)}}
	switch by {
	case Dot:
	case Euclid:
		find.Measure = decoder.Euclid
	case Cosine:
		own := kernel.SquareSum(row)
		find.Change = func(score float32, row []float32) float32 {
			if product := own * kernel.SquareSum(row); product > 0 {
				return score / float32(math.Sqrt(float64(product)))
			}
			return 0
		}
	default:
		return nil, fmt.Errorf("train: closeness %q: want %s", by,
			strings.Join(Closenesses(), ", "))
	}
	return find.Find(ctx, v.Table, row, n)
}
