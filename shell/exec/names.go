package exec

import (
	"context"
	"slices"

	"gdb/layout"
	"gdb/shell/graph"
)

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
