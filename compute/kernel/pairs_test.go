package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// randomPairs are edges among a few entities, with one negative at either end of each, or of all.
func randomPairs(r *rand.Rand, edges, dim int, own, reciprocal bool) *EdgePairs {
	const entities = 7
	noes := 1
	if own {
		noes = edges
	}
	row := func(n int) []float32 { return randomRows(r, 1, n)[0] }
	at := func(n int) []uint32 {
		rows := make([]uint32, n)
		for i := range rows {
			rows[i] = r.Uint32N(entities)
		}
		return rows
	}
	p := &EdgePairs{Dim: dim, Own: own, Table: row(entities * dim),
		Heads: at(edges), Tails: at(edges),
		NoTails: at(noes), NoHeads: at(noes), R: row(dim), S: row(dim), ForTails: row(2 * edges),
		ForHeads: row(2 * edges), DHeads: row(edges * dim), DTails: row(edges * dim),
		DNoTails: row(noes * dim), DNoHeads: row(noes * dim), DR: row(dim), DS: row(dim)}
	if !reciprocal {
		p.S, p.DS = p.R, p.DR
	}
	return p
}

// written returns the rows that EdgePairs writes.
func (p *EdgePairs) written() [][]float32 {
	return [][]float32{p.ForTails, p.ForHeads, p.DHeads, p.DTails, p.DNoTails, p.DNoHeads, p.DR,
		p.DS}
}

// copied returns a copy with written rows of its own.
func (p *EdgePairs) copied(reciprocal bool) *EdgePairs {
	c, w := *p, clones(p.written())
	c.ForTails, c.ForHeads, c.DHeads, c.DTails = w[0], w[1], w[2], w[3]
	c.DNoTails, c.DNoHeads, c.DR, c.DS = w[4], w[5], w[6], w[7]
	if !reciprocal {
		c.DS = c.DR
	}
	return &c
}

func TestEdgePairs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{0, 1, 15, 16, 17, 32, 35, 100} {
		for _, edges := range []int{0, 1, 2, 9} {
			for kind := range 4 {
				own, reciprocal := kind&1 > 0, kind&2 > 0
				t.Run(fmt.Sprint(dim, edges, own, reciprocal), func(t *testing.T) {
					a := randomPairs(r, edges, dim, own, reciprocal)
					b := a.copied(reciprocal)
					for range 2 { // the second time, gradients are added to
						a.Grads()
						b.refGrads()
						nearRows(t, a.written(), b.written(), 1e-5)
					}
					a.Scores()
					b.refScores()
					nearRows(t, a.written(), b.written(), 1e-5)
				})
			}
		}
	}
}
