package exec

import (
	"context"
	"fmt"
	"strings"

	"gdb/layout"
	"gdb/shell/graph"
	"gdb/shell/lang"
)

// Find is the operator that finds the nodes of a set.
type Find struct {
	*Operator
	set lang.NodeSet
}

// namedShown is how many of the nodes that the user named the plan shows.
const namedShown = 4

// Find adds an operator to the plan that finds the nodes of a set.
func (x *Execution) Find(name string, s lang.NodeSet) (*Find, error) {
	detail, rows, lookups := "", 0.0, 0.0
	switch {
	case s.Random > 0:
		detail = fmt.Sprintf("%d random nodes", s.Random)
		rows = min(float64(s.Random), float64(x.Graph.Meta().Nodes))
	case s.Split != "":
		split, err := x.Graph.Split(s.Split)
		if err != nil {
			return nil, err
		}
		detail, rows = "split "+s.Split, float64(split.Count)
	default:
		detail, lookups = x.named(s.IDs)
		rows = float64(s.IDs.Count)
	}
	return &Find{x.Operator(name, detail, rows, lookups), s}, nil
}

// FindAs makes op the operator that finds the nodes of a set.
func FindAs(op *Operator, s lang.NodeSet) *Find { return &Find{op, s} }

// named returns the first nodes of a list, as text, and how many of them must be looked up in the
// id dictionary.
func (x *Execution) named(list lang.NodeList) (detail string, lookups float64) {
	var refs []string
	for i, ref := range list.All() {
		if !ref.Internal && !x.Graph.DenseIDs() {
			lookups++
		}
		if i < namedShown {
			refs = append(refs, ref.Text())
		}
	}
	if list.Count > namedShown {
		refs = append(refs, fmt.Sprintf("… (%d)", list.Count))
	}
	return strings.Join(refs, ","), lookups
}

// Nodes finds the nodes. Their memory is reserved until the statement ends.
func (f *Find) Nodes(ctx context.Context) (nodes []layout.NodeID, err error) {
	x := f.x
	if err := x.Hold("the nodes of the statement", x.Graph.FindBytes(f.set)); err != nil {
		return nil, err
	}
	err = f.Run(ctx, func(ctx context.Context) error {
		nodes, err = x.Graph.Find(ctx, f.set, x.Seed())
		return err
	})
	if err != nil {
		return nil, err
	}
	f.Emit(len(nodes), 0)
	if f.set.IDs.Count > graph.NodeBatch {
		return nodes, nil // names are looked up in batches in this case
	}
	for i, ref := range f.set.IDs.All() {
		if !ref.Internal && x.Graph.IsCanonical(ref.External) {
			if x.known == nil {
				x.known = map[layout.NodeID]string{}
			}
			x.known[nodes[i]] = ref.External
		}
	}
	return nodes, nil
}
