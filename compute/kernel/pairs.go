package kernel

import "unsafe"

// EdgePairs are edges of one relation, each of which DistMult compares with one negative at either
// end. With the rows h, t, r and s of an edge's head, of its tail, and of the relation as it is
// asked for tails and for heads, the query for tails is q = h∘r, and that for heads p = t∘s. Rows
// have Dim values each.
type EdgePairs struct {
	Dim int
	// Table has the rows of entities. Of them, Heads and Tails are the ends of the edges, NoTails
	// and NoHeads the negatives in their place: one an edge if Own is set, else one for all.
	Table            []float32
	Heads, Tails     []uint32
	NoTails, NoHeads []uint32
	Own              bool
	R, S             []float32

	// ForTails and ForHeads are the scores of q and of p with the answer and with the negative, an
	// edge after the other, or their gradients.
	ForTails, ForHeads []float32

	// DHeads and DTails are the gradients of the rows of heads and tails, an edge after the other,
	// and DNoTails and DNoHeads those of negatives. What edges share is added to: the gradients of
	// R and S, which may be the same memory, and those of negatives unless Own is set.
	DHeads, DTails, DNoTails, DNoHeads []float32
	DR, DS                             []float32

	args pairsArgs // of a call, here so that a call allocates nothing
}

// check panics unless the rows of all edges are there.
func (p *EdgePairs) check(rows []uint32) {
	for _, row := range rows {
		_ = p.Table[int(row)*p.Dim:][:p.Dim]
	}
}

// setArgs checks lengths, and sets the arguments that are no gradients.
func (p *EdgePairs) setArgs() *pairsArgs {
	n := len(p.Heads)
	_, _, _, _ = p.Tails[n-1], p.ForTails[2*n-1], p.ForHeads[2*n-1], p.R[p.Dim-1]
	_ = p.S[p.Dim-1]
	for _, rows := range [][]uint32{p.Heads, p.Tails[:n], p.NoTails, p.NoHeads} {
		p.check(rows)
	}
	p.args = pairsArgs{table: unsafe.SliceData(p.Table), heads: &p.Heads[0], tails: &p.Tails[0],
		noTails: &p.NoTails[0], noHeads: &p.NoHeads[0], r: &p.R[0], s: &p.S[0],
		forTails: &p.ForTails[0], forHeads: &p.ForHeads[0], count: n, dim: p.Dim}
	if p.Own {
		_, _, p.args.noStep = p.NoTails[n-1], p.NoHeads[n-1], 4
	}
	return &p.args
}

// Scores writes the scores.
func (p *EdgePairs) Scores() {
	if len(p.Heads) == 0 || p.Dim == 0 {
		clear(p.ForTails)
		clear(p.ForHeads)
		return
	}
	links := level().links
	if links == nil {
		p.refScores()
		return
	}
	links.scores(p.setArgs())
}

// Grads writes the gradients of rows, by those of scores.
func (p *EdgePairs) Grads() {
	n := len(p.Heads)
	if n == 0 || p.Dim == 0 {
		return
	}
	links := level().links
	if links == nil {
		p.refGrads()
		return
	}
	a, last := p.setArgs(), n*p.Dim-1
	_, _, _, _ = p.DHeads[last], p.DTails[last], p.DR[p.Dim-1], p.DS[p.Dim-1]
	a.dHeads, a.dTails, a.dR, a.dS = &p.DHeads[0], &p.DTails[0], &p.DR[0], &p.DS[0]
	a.dNoTails, a.dNoHeads = &p.DNoTails[0], &p.DNoHeads[0]
	if p.Own {
		_, _ = p.DNoTails[last], p.DNoHeads[last]
		links.gradsOwn(a)
		return
	}
	_, _ = p.DNoTails[p.Dim-1], p.DNoHeads[p.Dim-1]
	links.grads(a)
}

// row returns a row of the table.
func (p *EdgePairs) row(at uint32) []float32 { return p.Table[int(at)*p.Dim:][:p.Dim] }

// negative returns the place of that of an edge.
func (p *EdgePairs) negative(edge int) int {
	if p.Own {
		return edge
	}
	return 0
}

// refScores is the specification of Scores.
func (p *EdgePairs) refScores() {
	for e := range p.Heads {
		h, t, no := p.row(p.Heads[e]), p.row(p.Tails[e]), p.negative(e)
		noTail, noHead := p.row(p.NoTails[no]), p.row(p.NoHeads[no])
		var scores [4]float32
		for i := range p.Dim {
			q, o := h[i]*p.R[i], t[i]*p.S[i]
			scores[0] += q * t[i]
			scores[1] += q * noTail[i]
			scores[2] += o * h[i]
			scores[3] += o * noHead[i]
		}
		copy(p.ForTails[2*e:], scores[:2])
		copy(p.ForHeads[2*e:], scores[2:])
	}
}

// refGrads is the specification of Grads.
func (p *EdgePairs) refGrads() {
	for e := range p.Heads {
		h, t, no := p.row(p.Heads[e]), p.row(p.Tails[e]), p.negative(e)
		noTail, noHead := p.row(p.NoTails[no]), p.row(p.NoHeads[no])
		g, k := p.ForTails[2*e:][:2], p.ForHeads[2*e:][:2]
		dh, dt := p.DHeads[e*p.Dim:][:p.Dim], p.DTails[e*p.Dim:][:p.Dim]
		dNoTail, dNoHead := p.DNoTails[no*p.Dim:][:p.Dim], p.DNoHeads[no*p.Dim:][:p.Dim]
		if p.Own {
			clear(dNoTail)
			clear(dNoHead)
		}
		for i := range p.Dim {
			q, o := h[i]*p.R[i], t[i]*p.S[i]
			dq, do := g[0]*t[i]+g[1]*noTail[i], k[0]*h[i]+k[1]*noHead[i]
			dh[i] = dq*p.R[i] + k[0]*o
			dt[i] = do*p.S[i] + g[0]*q
			p.DR[i] += dq * h[i]
			p.DS[i] += do * t[i]
			dNoTail[i] += g[1] * q
			dNoHead[i] += k[1] * o
		}
	}
}
