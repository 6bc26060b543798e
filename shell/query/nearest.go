package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gdb/kv"
	"gdb/layout"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/words"
	"gdb/train/link/triples"
)

// nearest runs NEAREST.
type nearest struct {
	x     *exec.Execution
	node  *exec.Find
	among *exec.Find // nil without AMONG
	typ   *typeRange // nil without TYPE
	scan  scan
	names exec.Names
}

// typeRange is the nodes of a type: from first on, count of them.
type typeRange struct{ first, count uint64 }

func planNearest(x *exec.Execution) (*exec.Plan, error) {
	n := &nearest{x: x}
	err := checkVectors(x)
	if err != nil {
		return nil, err
	}
	if x.Has("FEATURES") && x.Graph.OpenNearest == nil {
		return nil, errors.New("this program compares no features: it opened the store without " +
			"Options.Nearest")
	}
	if n.node, err = x.Find("nodes", x.Operand.Nodes); err != nil {
		return nil, err
	}
	inputs := []*exec.Operator{n.node.Operator}
	if x.Has("AMONG") {
		if n.among, err = x.Find("among", x.Args["AMONG"].Nodes); err != nil {
			return nil, err
		}
		inputs = append(inputs, n.among.Operator)
	}
	if n.typ, err = typeOf(x); err != nil {
		return nil, err
	}
	n.scan = newScan(x, n.detail(), float64(n.top()), inputs...)
	n.names = x.Names(n.scan.Operator)
	return &exec.Plan{Root: n.names.Operator, Run: n.run}, nil
}

// typeOf returns the nodes of the type that TYPE names; nil without.
func typeOf(x *exec.Execution) (*typeRange, error) {
	if !x.Has("TYPE") {
		return nil, nil
	}
	var names []string
	if !x.Graph.Meta().Typed() {
		return nil, errors.New("the nodes of this store have no types")
	}
	for _, t := range x.Graph.Meta().NodeTypes {
		if t.Name == x.Args["TYPE"].Text {
			return &typeRange{t.First, t.Nodes}, nil
		}
		names = append(names, t.Name)
	}
	return nil, fmt.Errorf("no nodes have the type %s%s; DESCRIBE lists them",
		words.Quoted(x.Args["TYPE"].Text), words.Near(x.Args["TYPE"].Text, names))
}

// top returns how many answers are wanted.
func (n *nearest) top() int { return int(n.x.IntOr("TOP", topDefault)) }

// detail says what will be compared, by the records of indexes alone.
func (n *nearest) detail() string {
	const all = "vectors of all nodes"
	ctx := context.Background() // of the catalog, which is open
	of, err := n.of(ctx)
	if err != nil || n.x.Has("EXACT") || n.x.Graph.OpenNearest == nil {
		return all // the error comes when it runs
	}
	m, err := n.record(ctx, of)
	if err != nil || m == nil || m.Snapshot != n.x.Graph.Meta().Snapshot ||
		cmp.Or(n.x.Args["BY"].Text, m.By) != m.By {
		return all
	}
	return fmt.Sprintf("index of %s: %d of %d lists", of, m.Probes, m.Lists)
}

// record returns what the catalog has of an index of vectors; nil for none.
func (n *nearest) record(ctx context.Context, of triples.VectorsOf) (*kv.IndexMeta, error) {
	all, err := n.x.Graph.Store.Catalog().Indexes(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.Name() == of.String() {
			return &m, nil
		}
	}
	return nil, nil
}

// of returns which vectors are compared.
func (n *nearest) of(ctx context.Context) (triples.VectorsOf, error) {
	if n.x.Has("FEATURES") {
		return triples.VectorsOf{Features: n.x.Args["FEATURES"].Text}, nil
	}
	run, err := linkRun(ctx, n.x, n.x.Args["RUN"].Text)
	return triples.VectorsOf{Run: run}, err
}

// run shows the nodes whose vectors are closest.
func (n *nearest) run(ctx context.Context) error {
	nodes, err := n.node.Nodes(ctx)
	if err != nil {
		return err
	}
	ask := triples.Nearest{Node: uint32(nodes[0]), By: n.x.Args["BY"].Text, Top: n.top()}
	free, err := n.restrict(ctx, &ask)
	if err != nil {
		return err
	}
	defer free()
	of, err := n.of(ctx)
	if err != nil {
		return err
	}
	best, done, err := n.indexed(ctx, of, &ask)
	if err == nil && !done {
		best, err = n.exact(ctx, &ask)
	}
	if err != nil {
		return err
	}
	n.x.Header("node", ask.By)
	return n.scan.each(ctx, n.names, best, func(a triples.Answer, name string) {
		n.x.Row(name, a.Score)
	})
}

// restrict sets which nodes may be answers.
func (n *nearest) restrict(ctx context.Context, ask *triples.Nearest) (free func(), err error) {
	g, t := n.x.Graph, n.typ
	inType := func(node uint32) bool {
		return t == nil || uint64(node) >= t.first && uint64(node)-t.first < t.count
	}
	free = func() {}
	if t != nil {
		ask.Among, ask.Allowed = inType, t.count
	}
	if n.among == nil {
		return free, nil
	}
	nodes, err := n.among.Nodes(ctx)
	if err != nil {
		return free, err
	}
	set := graph.NewBits(g.Budget)
	for len(nodes) > 0 && err == nil {
		some := nodes[:min(len(nodes), graph.NodeBatch)]
		err, nodes = set.Add(some), nodes[len(some):]
	}
	if err != nil {
		set.Free()
		return free, err
	}
	ask.Among = func(node uint32) bool { return inType(node) && set.Contains(node) }
	ask.Allowed = set.GetCardinality()
	return set.Free, nil
}

// indexed answers by vectors with an index, or by those that only these can compare: features, and
// some of the nodes. It is not done if the vectors of a run are to be compared with all.
func (n *nearest) indexed(ctx context.Context, of triples.VectorsOf,
	ask *triples.Nearest) (best []triples.Answer, done bool, err error) {
	g := n.x.Graph
	must := of.Run == "" || ask.Among != nil
	if g.OpenNearest == nil || n.x.Has("EXACT") && !must {
		return nil, false, nil
	}
	if !must { // a run without an index is opened once, by exact
		m, err := n.record(ctx, of)
		if err != nil || m == nil {
			return nil, false, err
		}
	}
	err = n.scan.Run(ctx, func(ctx context.Context) error {
		return g.Vectors(ctx, of, func(v graph.Nearest) (err error) {
			ask.By = cmp.Or(ask.By, v.Closeness())
			if !n.x.Has("EXACT") {
				what, why := v.Index(ask.By, ask.Top)
				if what != "" {
					n.x.Note("%s; EXACT compares with all", what)
					done = true
					best, err = v.Nearest(ctx, *ask)
					return err
				}
				if why != "" {
					n.x.Warn("the index of %s is not used: %s", of, why)
				}
			}
			if done = must; must {
				best, err = v.Exact(ctx, *ask)
			}
			return err
		})
	})
	if errors.Is(err, triples.ErrPartitioned) && !must {
		return nil, false, nil
	}
	return best, done, err
}

// exact compares with the vectors of all nodes of a run.
func (n *nearest) exact(ctx context.Context, ask *triples.Nearest) (best []triples.Answer,
	err error) {
	err = n.scan.with(ctx, func(ctx context.Context, v graph.Vectors) (err error) {
		ask.By = cmp.Or(n.x.Args["BY"].Text, v.Closeness())
		best, err = v.Nearest(ctx, layout.NodeID(ask.Node), ask.By, ask.Top)
		return err
	})
	return best, err
}
