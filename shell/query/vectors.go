package query

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/words"
	"gdb/train/link/triples"
)

// topDefault is how many rows NEAREST and SCORE show without TOP.
const topDefault = 10

// scan is the operator that reads the vectors of a run.
type scan struct {
	*exec.Operator
	x *exec.Execution
}

// newScan plans to compare with the vectors of all nodes, or to read some vectors.
func newScan(x *exec.Execution, detail string, rows float64, in ...*exec.Operator) scan {
	return scan{x.Operator("scan", detail, rows, -1, in...), x}
}

// with opens the vectors of the run that the statement names, or of the newest run that predicts
// links, and calls work with them.
func (s scan) with(ctx context.Context, work func(ctx context.Context,
	v graph.Vectors) error) error {
	return s.Run(ctx, func(ctx context.Context) (err error) {
		run, err := linkRun(ctx, s.x, s.x.Args["RUN"].Text)
		if err != nil {
			return err
		}
		g := s.x.Graph
		v, err := g.OpenVectors(ctx, g.Store, g.Dev, run, g.Budget, runtime.NumCPU())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.Close()) }()
		settings, note := v.About()
		s.x.Note("run %s: %s", run, settings)
		if note != "" {
			s.x.Note("%s", note)
		}
		return work(ctx, v)
	})
}

// each calls fn with each answer and the name of its node.
func (s scan) each(ctx context.Context, names exec.Names, best []triples.Answer,
	fn func(a triples.Answer, name string)) error {
	found := make([]layout.NodeID, len(best))
	for i, a := range best {
		found[i] = layout.NodeID(a.Entity)
	}
	s.Emit(len(found), 0)
	return names.InBatches(ctx, found, func(part []layout.NodeID, names []string) error {
		for i, name := range names {
			fn(best[i], name)
		}
		best = best[len(part):]
		return s.x.Err()
	})
}

// checkVectors returns an error in a program that has set no OpenVectors.
func checkVectors(x *exec.Execution) error {
	if x.Graph.OpenVectors == nil {
		return errors.New("this program cannot read the vectors of runs: it opened the store " +
			"without Options.Vectors")
	}
	return nil
}

// linkRun returns the name of a run that predicts links; for "" the newest.
func linkRun(ctx context.Context, x *exec.Execution, name string) (string, error) {
	if name != "" {
		run, err := findRun(ctx, x, name)
		return run.Name, err
	}
	run, err := newestRun(ctx, x, true)
	if err == nil && run == "" {
		err = errors.New("no run has learned vectors that score edges: train one with --task link")
	}
	return run, err
}

// score runs SCORE: it shows the score of an edge, or the best nodes for the end that is asked for.
type score struct {
	x     *exec.Execution
	edge  *lang.EdgeRef
	ends  []*exec.Find // the ends that are known: head, tail
	scan  scan
	names exec.Names
}

func planScore(x *exec.Execution) (*exec.Plan, error) {
	s := &score{x: x, edge: &x.Operand.Edge}
	if !s.edge.Asks() && (x.Has("TOP") || x.Has("NEW")) {
		return nil, fmt.Errorf("TOP and NEW want an end that is asked for, as in SCORE %s, ?",
			lang.Literal(s.edge.Head.Text()))
	}
	if err := errors.Join(checkVectors(x), s.checkRelation()); err != nil {
		return nil, err
	}
	var inputs []*exec.Operator
	for _, ref := range []*lang.NodeRef{s.edge.Head, s.edge.Tail} {
		if ref == nil {
			continue
		}
		f, err := x.Find("nodes", lang.NodeSet{IDs: lang.OneNode(*ref)})
		if err != nil {
			return nil, err
		}
		s.ends, inputs = append(s.ends, f), append(inputs, f.Operator)
	}
	rows, detail := 1.0, "vectors of the ends"
	if s.edge.Asks() {
		rows, detail = float64(x.IntOr("TOP", topDefault)), "vectors of all nodes"
	}
	s.scan = newScan(x, detail, rows, inputs...)
	s.names = x.Names(s.scan.Operator)
	return &exec.Plan{Root: s.names.Operator, Run: s.run}, nil
}

// checkRelation returns an error if a relation is missing, or the store does not have it.
func (s *score) checkRelation() error {
	types := s.x.Graph.Meta().EdgeTypes
	switch name := s.edge.Relation; {
	case name == "" && len(types) > 1:
		return fmt.Errorf("edges have %d types: name one, as in SCORE a, %s, ?", len(types),
			lang.Literal(types[0]))
	case name != "" && len(types) == 0:
		return fmt.Errorf("edges have no types: leave %s out, as in SCORE a, b",
			words.Quoted(name))
	case name != "" && !slices.Contains(types, name):
		return fmt.Errorf("no edge type %s%s; DESCRIBE TYPES lists them", words.Quoted(name),
			words.Near(name, types))
	}
	return nil
}

// run finds the ends and the scores, and which of the edges the graph has.
func (s *score) run(ctx context.Context) error {
	var known []layout.NodeID
	for _, f := range s.ends {
		nodes, err := f.Nodes(ctx)
		if err != nil {
			return err
		}
		known = append(known, nodes[0])
	}
	relation := uint32(max(0, slices.Index(s.x.Graph.Meta().EdgeTypes, s.edge.Relation)))
	if !s.edge.Asks() {
		return s.one(ctx, triples.Triple{Head: uint32(known[0]), Relation: relation,
			Tail: uint32(known[1])})
	}
	return s.complete(ctx, triples.Query{Entity: uint32(known[0]), Relation: relation,
		Head: s.edge.Head == nil})
}

// one shows the score of an edge.
func (s *score) one(ctx context.Context, e triples.Triple) error {
	var value float32
	var is any
	err := s.scan.with(ctx, func(ctx context.Context, v graph.Vectors) (err error) {
		if value, err = v.Score(ctx, e); err != nil {
			return err
		}
		answers, any, err := answersOf(ctx, s.x, triples.Query{Entity: e.Head,
			Relation: e.Relation})
		if any {
			_, found := slices.BinarySearch(answers, e.Tail)
			is = yesNo(found)
		}
		return err
	})
	if err != nil {
		return err
	}
	s.x.Header("head", "relation", "tail", "score", "known")
	names, err := s.names.Of(ctx, []layout.NodeID{layout.NodeID(e.Head), layout.NodeID(e.Tail)})
	if err != nil {
		return err
	}
	s.x.Row(names[0], s.relation(), names[1], value, is)
	return nil
}

// relation returns the cell of the relation: nothing where edges have no types.
func (s *score) relation() any {
	if s.edge.Relation == "" {
		return nil
	}
	return s.edge.Relation
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// complete shows the best nodes for the missing end of an edge.
func (s *score) complete(ctx context.Context, q triples.Query) error {
	var best []triples.Answer
	var known []uint32
	split := false
	err := s.scan.with(ctx, func(ctx context.Context, v graph.Vectors) (err error) {
		if known, split, err = answersOf(ctx, s.x, q); err != nil {
			return err
		}
		var skip []uint32
		if s.x.Has("NEW") {
			skip = known
		}
		best, err = v.Complete(ctx, q, int(s.x.IntOr("TOP", topDefault)), skip)
		return err
	})
	if err != nil {
		return err
	}
	s.x.Header("head", "relation", "tail", "score", "known")
	end, err := s.names.Of(ctx, []layout.NodeID{layout.NodeID(q.Entity)})
	if err != nil {
		return err
	}
	return s.scan.each(ctx, s.names, best, func(a triples.Answer, name string) {
		head, tail := end[0], name
		if q.Head {
			head, tail = tail, head
		}
		var is any
		if split {
			_, has := slices.BinarySearch(known, a.Entity)
			is = yesNo(has)
		}
		s.x.Row(head, s.relation(), tail, a.Score, is)
	})
}

// answersOf returns the answers to a query in all splits, in ascending order. It reads the files of
// edges once. split is false if the store has no such files.
func answersOf(ctx context.Context, x *exec.Execution, q triples.Query) (out []uint32, split bool,
	err error) {
	if edgefile.Check(x.Graph.Meta()) != nil {
		return nil, false, nil
	}
	for _, m := range x.Graph.Meta().EdgeSplits {
		if out, err = answersIn(ctx, x, m.Name, q, out); err != nil {
			return nil, false, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), true, nil
}

// answersIn appends the answers of one split to out.
func answersIn(ctx context.Context, x *exec.Execution, split string, q triples.Query,
	out []uint32) (_ []uint32, err error) {
	f, err := edgefile.Open(ctx, x.Graph.Store, x.Graph.Dev, split)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = f.Stream(ctx, 0, f.Count(), func(_ uint64, e edgefile.Edges) error {
		from, to := e.Src, e.Dst
		if q.Head {
			from, to = to, from
		}
		for i, end := range from {
			if end == q.Entity && (e.Rel == nil || uint32(e.Rel[i]) == q.Relation) {
				out = append(out, to[i])
			}
		}
		return ctx.Err()
	})
	return out, err
}
