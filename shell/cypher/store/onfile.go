package store

import (
	"context"
	"math/bits"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/engine"
	"gdb/shell/graph"
)

// directions returns the directions of which lists are made.
func (s *source) directions(dir ast.Direction) []layout.Direction {
	switch {
	case s.meta.Undirected || dir == ast.In:
		return []layout.Direction{layout.In}
	case dir == ast.Out:
		return []layout.Direction{layout.Out}
	}
	return []layout.Direction{layout.Out, layout.In}
}

// Outline returns what the catalog says of lists; nil if the store does not keep them.
func (s *source) Outline(dir ast.Direction, types []string) *adjacency.Outline {
	wanted, ok := s.types(types)
	if !ok {
		return &adjacency.Outline{}
	}
	out := &adjacency.Outline{Loops: s.meta.Stats.SelfLoops > 0, Multi: true, Told: true,
		TypeBits: uint8(bits.Len(uint(max(len(s.meta.EdgeTypes), 1) - 1)))}
	from, to := s.Ends(types)
	for _, d := range s.directions(dir) {
		if !s.g.HasDirection(d) {
			return nil
		}
		out.Entries += s.edges(wanted)
	}
	switch {
	case s.meta.Undirected || dir == ast.Both:
		to = engine.Union(from, to)
	case dir == ast.In:
		to = from
	}
	first, end := span(to)
	out.Least, out.Most = first, max(end, 1)-1
	return out
}

// edges returns how many edges some relations have, or all for nil.
func (s *source) edges(wanted map[uint16]bool) (n uint64) {
	if counts := s.meta.Stats.TypeCounts; wanted != nil && len(counts) > 0 {
		for t := range wanted {
			n += counts[t]
		}
		return n
	}
	return s.meta.Edges
}

// readShare is how many entries are read into memory in the time in which one list is read from
// the file, with the entries of others around it.
const readShare = 1000

// InMemory says that lists should be in memory if all are kept there, or if they fit and a
// statement follows many of them.
func (s *source) InMemory(wants []engine.Want, lists float64) bool {
	missing, bytes := uint64(0), int64(0)
	seen := map[string]bool{}
	for _, w := range wants {
		dirs := []ast.Direction{w.Dir}
		if w.Dir == ast.Both && !s.meta.Undirected {
			dirs = append(dirs, ast.In, ast.Out)
		}
		for _, dir := range dirs {
			if s.meta.Undirected {
				dir = ast.In
			}
			name := listsName(dir, w.Types)
			if seen[name] || s.g.Kept.Has(name) {
				continue
			}
			seen[name] = true
			n, b := s.listsBytes(dir, w.Types)
			missing, bytes = missing+n, bytes+b
		}
	}
	switch {
	case missing == 0:
		return true
	case lists*readShare < float64(missing):
		return false
	}
	fits := bytes <= s.Free()/4*3 // the rest is for rows
	if !fits {
		s.x.Warn("lists of neighbors are read from the file: in memory they take %s, and %s of "+
			"--memory are free", mem.FormatSize(bytes), mem.FormatSize(s.Free()))
	}
	return fits
}

// listsBytes returns how many entries lists have, and the memory that they take.
func (s *source) listsBytes(dir ast.Direction, types []string) (entries uint64, bytes int64) {
	wanted, ok := s.types(types)
	if !ok {
		return 0, 0
	}
	from, to := s.Ends(types)
	each := int64(4)
	if s.several(wanted) {
		each += 2
	}
	entries = s.edges(wanted)
	switch dir {
	case ast.In:
		from = to
	case ast.Both:
		from = engine.Union(from, to)
		entries, each = 2*entries, each+4
	}
	first, end := span(from)
	return entries, each*int64(entries) + 4*(int64(end-first)+1)
}

// Free returns the memory that is left, with what is kept for nobody, and less what is needed to
// read from files that were not read yet.
func (s *source) Free() int64 {
	free := s.g.Budget.Free() + s.g.Kept.Unused()
	for _, d := range []layout.Direction{layout.In, layout.Out} {
		if s.g.HasDirection(d) {
			free -= s.g.UnopenedBytes(d)
		}
	}
	return max(free, 0)
}

// Read reads lists from the file.
func (s *source) Read(ctx context.Context, w engine.Want, nodes []uint32, into *adjacency.Lists,
	room int64) error {
	grow := func(n int64) error {
		if n > 0 && len(nodes) > 1 && into.Bytes()+n > room {
			return &mem.LimitError{What: "lists of neighbors", Want: into.Bytes() + n, Limit: room}
		}
		return s.Grow(n)
	}
	wanted, missing := s.typeSet(w.Types)
	if len(missing) > 0 && len(wanted) == 0 {
		if err := into.Begin(nodes, grow); err != nil {
			return err
		}
		return into.Finish(ctx, grow)
	}
	dirs := s.directions(w.Dir)
	if len(dirs) == 1 {
		return s.readSome(ctx, dirs[0], wanted, nodes, into, grow)
	}
	var parts [2]adjacency.Lists
	defer func() { _ = s.Grow(-parts[0].Bytes() - parts[1].Bytes()) }() // it cannot fail
	for i, d := range dirs {
		if err := s.readSome(ctx, d, wanted, nodes, &parts[i], grow); err != nil {
			return err
		}
	}
	return into.Join(ctx, &parts[0], &parts[1], grow)
}

// readSome reads lists of a direction of some nodes, by blocks in the order of the file.
func (s *source) readSome(ctx context.Context, d layout.Direction, wanted map[uint16]bool,
	nodes []uint32, into *adjacency.Lists, grow func(int64) error) error {
	if err := into.Begin(nodes, grow); err != nil {
		return err
	}
	typed := s.several(wanted)
	for t := range wanted {
		into.Type = t
	}
	only := s.only(wanted)
	part := make([]layout.NodeID, 0, min(len(nodes), graph.NodeBatch))
	at := 0
	add := func(owner uint32, l *listfile.Lists, i int) error {
		for at < len(nodes) && nodes[at] < owner {
			at++
		}
		if at == len(nodes) || nodes[at] != owner {
			return nil
		}
		err := take(into, l, i, only, typed, grow)
		into.Until(at)
		return err
	}
	if s.dense(nodes) {
		first, end := layout.NodeID(nodes[0]), layout.NodeID(nodes[len(nodes)-1])+1
		err := s.g.EachInRange(ctx, d, first, end,
			func(first layout.NodeID, _ bool, l *listfile.Lists) error {
				for i := range len(l.Off) - 1 {
					if err := add(uint32(first)+uint32(i), l, i); err != nil {
						return err
					}
				}
				return ctx.Err()
			})
		if err != nil {
			return err
		}
		return into.Finish(ctx, grow)
	}
	each := func(owners []layout.NodeID, l *listfile.Lists) (bool, error) {
		for i, owner := range owners {
			if err := add(uint32(owner), l, i); err != nil {
				return false, err
			}
		}
		return true, ctx.Err()
	}
	for from := 0; from < len(nodes); from += len(part) {
		part = part[:0]
		for _, v := range nodes[from:min(from+graph.NodeBatch, len(nodes))] {
			part = append(part, layout.NodeID(v))
		}
		if err := s.g.EachList(ctx, d, part, graph.ListEntries, each); err != nil {
			return err
		}
	}
	return into.Finish(ctx, grow)
}

// The lists of denseLeast nodes or more are read with all between them, if these are at most
// denseShare times as many.
const (
	denseLeast = 512
	denseShare = 4
)

// dense reports whether the lists of some nodes are read in large reads, with those of the nodes
// between them: finding a list takes longer than reading several.
func (s *source) dense(nodes []uint32) bool {
	if len(nodes) < denseLeast || !s.meta.Typed() && len(s.meta.EdgeTypes) > 0 {
		return false
	}
	return int(nodes[len(nodes)-1]-nodes[0]) < denseShare*len(nodes)
}

// only tells by type which entries are wanted; nil if all are.
func (s *source) only(wanted map[uint16]bool) []bool {
	if wanted == nil || len(wanted) >= len(s.meta.EdgeTypes) {
		return nil
	}
	out := make([]bool, len(s.meta.EdgeTypes))
	for t := range wanted {
		out[t] = true
	}
	return out
}

// take appends the wanted entries of the i-th list of l; nil wants all.
func take(into *adjacency.Lists, l *listfile.Lists, i int, wanted []bool, typed bool,
	grow func(int64) error) error {
	lo, hi := l.Off[i], l.Off[i+1]
	if err := into.Room(int(hi-lo), typed, grow); err != nil {
		return err
	}
	if wanted == nil && !typed {
		for _, u := range l.Nbrs[lo:hi] {
			into.Nbr = append(into.Nbr, uint32(u))
		}
		return nil
	}
	for k := lo; k < hi; k++ {
		typ := typeOf(l, k)
		if wanted != nil && !wanted[typ] {
			continue
		}
		into.Nbr = append(into.Nbr, uint32(l.Nbrs[k]))
		if typed {
			into.Typ = append(into.Typ, typ)
		}
	}
	return nil
}
