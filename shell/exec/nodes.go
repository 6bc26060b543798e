package exec

import (
	"context"
	"fmt"
	"slices"
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

// Names is the operator that turns nodes into external ids.
type Names struct{ *Operator }

// Names adds an operator to the plan that looks up the names of the nodes that in hands on.
func (x *Execution) Names(in *Operator) Names {
	if x.Graph.DenseIDs() {
		return Names{x.Operator("names", "ids are node numbers", in.Rows, 0, in)}
	}
	return Names{x.Operator("names", "id dictionary", in.Rows,
		x.Estimates().nameBlocks(in.Rows), in)}
}

// Of returns the external ids of nodes. Ids that the user wrote are not looked up.
func (n Names) Of(ctx context.Context, nodes []layout.NodeID) (names []string, err error) {
	if n.x.numbered {
		for _, v := range nodes {
			names = append(names, lang.NodeRef{Internal: true, ID: uint64(v)}.Text())
		}
		return names, nil
	}
	if names := n.x.knownNames(nodes); names != nil {
		return names, nil
	}
	err = n.Run(ctx, func(ctx context.Context) error {
		names, err = n.x.Graph.Names(ctx, nodes)
		return err
	})
	used := 0
	if !n.x.Graph.DenseIDs() {
		for _, s := range names {
			used += len(s)
		}
	}
	n.Emit(len(names), used)
	return names, err
}

// knownNames returns the ids of nodes if the user wrote all of them, and nil otherwise.
func (x *Execution) knownNames(nodes []layout.NodeID) (names []string) {
	if len(nodes) > len(x.known) {
		return nil
	}
	for _, v := range nodes {
		name, ok := x.known[v]
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// All returns the external ids of all nodes. Their memory is reserved until the statement ends.
func (n Names) All(ctx context.Context, nodes []layout.NodeID) ([]string, error) {
	bytes := 16 * int64(len(nodes)) // the memory of the strings; the bytes of their text are added
	all := make([]string, 0, len(nodes))
	for some := range slices.Chunk(nodes, n.x.Graph.NameBatch()) {
		names, err := n.Of(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			bytes += int64(len(name)+7) &^ 7
		}
		if err := n.x.Hold("names of the nodes", bytes); err != nil {
			return nil, err
		}
		all, bytes = append(all, names...), 0
	}
	return all, nil
}

// InBatches calls fn with consecutive parts of nodes and their external ids.
func (n Names) InBatches(ctx context.Context, nodes []layout.NodeID,
	fn func(part []layout.NodeID, names []string) error) error {
	for some := range slices.Chunk(nodes, n.x.Graph.NameBatch()) {
		names, err := n.Of(ctx, some)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(some, graph.NodeBatch) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fn(part, names[:len(part)]); err != nil {
				return err
			}
			names = names[len(part):]
		}
	}
	return nil
}
