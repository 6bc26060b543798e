package link

import (
	"gdb/compute/kernel"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// isPairs reports whether kernel.EdgePairs has kernels for steps that go edge by edge.
func isPairs(c *setting.Link) bool {
	return c.Decoder == "distmult" && c.Negatives == 1 && c.Dropout == 0 &&
		kernel.FusesLinks()
}

// comparePairs does the work of comparePart with kernel.EdgePairs, run by run. In dRows
// the gradients of negatives follow those of the ends: one for each query or, if edges share
// negatives, one for each part.
func (s *byEdge) comparePairs(edges []triples.Triple, part int, _ uint64) {
	n := len(edges)
	form, first, end := s.dec.FormDim(s.cfg.Dim), s.runs.partAt[part], s.runs.partAt[part+1]
	lo, hi := part*fewPart, min((part+1)*fewPart, n)
	clear(s.dForms[int(first)*form : int(end)*form])
	p := kernel.EdgePairs{Dim: s.cfg.Dim, Own: s.cfg.NegativeSampling == setting.NegativesEdge}
	list := s.entityAt
	p.Table = s.entityRows
	ends := 2
	if p.Own {
		ends = 4
	} else {
		shared := s.dRows[2*(n+part)*p.Dim:][:2*p.Dim]
		clear(shared)
		p.DNoTails, p.DNoHeads = shared[:p.Dim], shared[p.Dim:]
		p.NoTails, p.NoHeads = list[2*n:2*n+1], list[2*n+1:2*n+2]
	}
	for i := range ends {
		kernel.Prefetch(p.Table, p.Dim, list[i*n+lo:i*n+hi])
	}
	scores := s.fewGrads[4*lo : 4*hi]
	s.eachRun(&p, list, n, lo, hi, (*kernel.EdgePairs).Scores)
	s.excludeAnswers(scores, n, lo, hi)
	s.losses[part] = s.loss.Rows(scores, 2, 1/s.edgesInMean(n))
	s.eachRun(&p, list, n, lo, hi, (*kernel.EdgePairs).Grads)
}

// eachRun calls do with each run of the edges of a part. list gives the row of each entry of
// the step's list.
func (s *byEdge) eachRun(p *kernel.EdgePairs, list []uint32, n, lo, hi int,
	do func(*kernel.EdgePairs)) {
	dim, form, runOf := p.Dim, s.dec.FormDim(p.Dim), s.runs.runOf
	scores := s.fewGrads[4*lo : 4*hi]
	forTails, forHeads := scores[:2*(hi-lo)], scores[2*(hi-lo):]
	for from, to := lo, lo; from < hi; from = to {
		run, other := int(runOf[from]), int(runOf[n+from])
		for to < hi && int(runOf[to]) == run {
			to++
		}
		p.Heads, p.Tails = list[from:to], list[n+from:n+to]
		p.R, p.S = s.form(s.rels[run]), s.form(s.rels[other])
		p.DR, p.DS = s.dForms[run*form:][:form], s.dForms[other*form:][:form]
		p.ForTails, p.ForHeads = forTails[2*(from-lo):2*(to-lo)], forHeads[2*(from-lo):2*(to-lo)]
		p.DHeads, p.DTails = s.dRows[from*dim:to*dim], s.dRows[(n+from)*dim:(n+to)*dim]
		if p.Own {
			p.NoTails, p.NoHeads = list[2*n+from:2*n+to], list[3*n+from:3*n+to]
			p.DNoTails = s.dRows[(2*n+from)*dim : (2*n+to)*dim]
			p.DNoHeads = s.dRows[(3*n+from)*dim : (3*n+to)*dim]
		}
		do(p)
	}
}

// isFused reports whether kernel.AdagradRows sums gradients and takes the steps of rows in one go.
func (s *byEdge) isFused() bool {
	return s.cfg.Optimizer == "adagrad" && kernel.FusesLinks() &&
		(s.cfg.Regularizer == setting.RegularizerNone || s.cubes())
}

// stepEntities takes the step for the entities lo to hi of the step.
func (s *byEdge) stepEntities(n, lo, hi int, o *optimizer) {
	x := takeScratch(&s.scratch)
	multiples := s.cfg.NegativeSampling == setting.NegativesEdge && !s.negativeRows
	s.listGradients(x, n, lo, hi, multiples)
	sums := o.sums(s.learned)
	sums.At, sums.Off, sums.Places, sums.Gradients = s.rows.Numbers[lo:hi], x.off, x.rows, s.dRows
	if multiples { // else all are 1
		sums.Values = x.values
	}
	if s.cubes() {
		x.cubes = x.cubes[:0]
		for i := lo; i < hi; i++ {
			x.cubes = append(x.cubes, 3*float32(s.cfg.RegularizerWeight)*s.edgesOf(i, n))
		}
		sums.Cubes = x.cubes
	}
	sums.Step()
	s.scratch.Put(x)
}

// stepRelations takes the step for the relations lo to hi of the step, whose forms
// equal their rows.
func (s *byEdge) stepRelations(n, lo, hi int, o *optimizer) {
	x, sums := takeScratch(&s.scratch), o.sums(s.relations)
	sums.At, sums.Off, sums.Places = s.rel.Numbers[lo:hi], s.rel.Off[lo:hi+1], s.rel.At
	sums.Gradients = s.dForms
	if s.cubes() {
		x.cubes = x.cubes[:0]
		for i := lo; i < hi; i++ {
			edges := float32(0)
			for _, run := range s.rel.At[s.rel.Off[i]:s.rel.Off[i+1]] {
				edges += s.drawn.runs.lengths[run]
			}
			x.cubes = append(x.cubes, 3*float32(s.cfg.RegularizerWeight)*edges/s.edgesInMean(n))
		}
		sums.Cubes = x.cubes
	}
	sums.Step()
	s.scratch.Put(x)
}
