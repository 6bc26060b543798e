package vectors

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gdb/compute/kernel"
	"gdb/kv"
	"gdb/train/link/decoder"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

// The ways to compare vectors of nodes.
const (
	Cosine = "cosine" // of the angle between them
	Dot    = "dot"    // their product
	Euclid = "euclid" // minus their Euclidean distance
)

// Closenesses lists the ways to compare.
func Closenesses() []string { return []string{Cosine, Dot, Euclid} }

// Closeness is the way that fits the run: distances, where its decoder scores by them.
func (v *Vectors) Closeness() string {
	if v.scorer.Decoder.Measure().IsDistance() {
		return Euclid
	}
	return Cosine
}

// Nearest returns the n nodes whose vectors are closest to that of a node, which is not one of
// them, the closest first. by is one of Closenesses, or "" for Closeness. A vector of zeros has no
// angle: it is at 0 from all.
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
	return find.Find(ctx, v.table, row, n)
}
