package engine

import (
	"fmt"
	"strings"
)

// RowsStep is the name of the first step of a plan that takes the rows of other clauses.
const RowsStep = "rows"

// Step is a line of a plan: what a step does, and how many rows it hands on, by estimate and, once
// it has run, by count.
type Step struct {
	Name, Detail string
	Rows         float64
	Out          func() int64
}

// explain returns the steps of the plan, in the order in which they run.
func (pl *plan) explain() (out []Step) {
	for i, s := range pl.steps {
		name, detail := "scan", ""
		if s.node >= 0 {
			detail = pl.p.shown(s.node)
		}
		switch {
		case s.node < 0 && len(s.legs) > 0:
			name = "join"
		case s.node < 0:
			name, detail = RowsStep, "of the clauses before"
		case len(s.legs) > 1:
			name = "intersect"
		case len(s.legs) == 1:
			name = "hop"
		case pl.p.shortest != nil && s.node == pathEnd:
			name, detail = "reach", pl.p.shown(pathStart)+" to "+detail
		case pl.p.shortest != nil && s.node == pathLength:
			name, detail = "length", "of the path"
		case pl.p.nodes[s.node].anchored || pl.p.nodes[s.node].by != nil:
			name = "find"
			if key := pl.p.nodes[s.node].key; key != "" {
				detail += " by " + key
			}
		case i > 0:
			name = "all"
		}
		var by []string
		for _, r := range s.legs {
			by = append(by, pl.p.arrow(r))
		}
		if len(by) > 0 {
			detail = strings.Join(by, ", ")
		}
		detail += pl.onFile(s.legs)
		out = append(out, Step{name, detail, s.rows, s.found.Load})
		for _, f := range s.factors {
			detail := pl.p.counted(f) + pl.onFile(f.legs)
			out = append(out, Step{"count", detail, s.rows, s.out.Load})
		}
	}
	if in := pl.p.in; in != nil && in.optional {
		out = append(out, Step{"optional", "rows without a match too", out[len(out)-1].Rows,
			in.out.Load})
	}
	return out
}

// shown returns a node as a statement writes it.
func (p *pattern) shown(i int) string {
	n := p.nodes[i]
	out := "("
	if n.named {
		out += n.name
	}
	for _, l := range n.labels {
		out += ":" + l
	}
	return out + ")"
}

// arrow returns a relationship as a statement writes it, from its owner on.
func (p *pattern) arrow(r *rel) string {
	in := ""
	if len(r.types) > 0 {
		in = "[:" + strings.Join(r.types, "|") + "]"
	}
	form := "-%s-"
	switch {
	case r.undirected:
	case r.owner == r.from:
		form = "-%s->"
	default:
		form = "<-%s-"
	}
	return p.shown(r.owner) + fmt.Sprintf(form, in) + p.shown(r.other())
}

// counted returns what a factor counts.
func (p *pattern) counted(f *factor) string {
	var out []string
	rels := f.legs
	if f.ring != nil {
		rels = f.ring.rels[:]
	}
	for _, r := range rels {
		out = append(out, p.arrow(r))
	}
	if f.twin != nil {
		out = append(out, p.counted(f.twin))
	}
	for _, part := range f.parts {
		out = append(out, p.counted(part))
	}
	return strings.Join(out, ", ")
}
