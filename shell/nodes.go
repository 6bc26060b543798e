package shell

import (
	"context"
	"slices"

	"gdb/layout/listfile"
	"gdb/shell/graph"
	"gdb/shell/lang"

	"gdb/layout"
)

// resolve finds the nodes of a set, as the operator of that name.
func (x *execution) resolve(ctx context.Context, name string, s lang.NodeSet) ([]layout.NodeID,
	error) {
	ctx, leave := x.enter(ctx, name)
	defer leave()
	bytes := x.engine.FindBytes(s)
	if err := x.hold("the nodes of the statement", bytes); err != nil {
		return nil, err
	}
	nodes, err := x.engine.Find(ctx, s, x.seed())
	if err != nil {
		return nil, err
	}
	x.emit(name, len(nodes), 0)
	if s.IDs.Count > graph.NodeBatch {
		return nodes, nil // names are looked up in batches then
	}
	for i, ref := range s.IDs.All() {
		if !ref.Internal && x.engine.IsCanonical(ref.External) {
			if x.known == nil {
				x.known = map[layout.NodeID]string{}
			}
			x.known[nodes[i]] = ref.External
		}
	}
	return nodes, nil
}

// hold counts n bytes until the statement ends.
func (x *execution) hold(what string, n int64) error {
	if err := x.engine.Budget.Reserve(what, n); err != nil {
		return err
	}
	x.held += n
	return nil
}

// allNames are the external ids of all nodes, counted until the statement ends.
func (x *execution) allNames(ctx context.Context, nodes []layout.NodeID) ([]string, error) {
	bytes := 16 * int64(len(nodes)) // of the strings; their text comes to it
	all := make([]string, 0, len(nodes))
	for some := range slices.Chunk(nodes, x.engine.NameBatch()) {
		names, err := x.names(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			bytes += int64(len(name)+7) &^ 7
		}
		if err := x.hold("names of the nodes", bytes); err != nil {
			return nil, err
		}
		all, bytes = append(all, names...), 0
	}
	return all, nil
}

// names finds external ids, as the operator names. Those that the user wrote are not looked up.
func (x *execution) names(ctx context.Context, nodes []layout.NodeID) ([]string, error) {
	ctx, leave := x.enter(ctx, "names")
	defer leave()
	if names := x.knownNames(nodes); names != nil {
		return names, nil
	}
	names, err := x.engine.Names(ctx, nodes)
	used := 0
	if !x.engine.DenseIDs() {
		for _, s := range names {
			used += len(s)
		}
	}
	x.emit("names", len(names), used)
	return names, err
}

// knownNames are the ids of nodes if the user wrote all of them, else nil.
func (x *execution) knownNames(nodes []layout.NodeID) (names []string) {
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

// inBatches calls fn with consecutive parts of nodes and their external ids.
func (x *execution) inBatches(ctx context.Context, nodes []layout.NodeID,
	fn func(part []layout.NodeID, names []string) error) error {
	for some := range slices.Chunk(nodes, x.engine.NameBatch()) {
		names, err := x.names(ctx, some)
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

// eachList is engine.eachList as the operator of that name; fn runs as the last operator, and
// counts the rows.
func (x *execution) eachList(ctx context.Context, name string, dir layout.Direction,
	nodes []layout.NodeID, limit int64,
	fn func([]layout.NodeID, *listfile.Lists) (bool, error)) error {
	inner, leave := x.enter(ctx, name)
	defer leave()
	perEntry := estimator{x.engine.Meta()}.entryBytes()
	return x.engine.EachList(inner, dir, nodes, limit, func(part []layout.NodeID,
		l *listfile.Lists) (bool, error) {
		x.emit(name, 0, len(l.Nbrs)*perEntry)
		before := x.watch.Switch(&x.root.span)
		defer x.watch.Switch(before)
		return fn(part, l)
	})
}
