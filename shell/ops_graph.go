package shell

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gdb/kv"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// directions returns what IN, OUT or BOTH ask for; def is used without them.
func (x *execution) directions(def ...layout.Direction) []layout.Direction {
	switch {
	case x.has("BOTH"):
		return []layout.Direction{layout.In, layout.Out}
	case x.has("IN"):
		return []layout.Direction{layout.In}
	case x.has("OUT"):
		return []layout.Direction{layout.Out}
	}
	return def
}

// listDirection is the default of NEIGHBORS and DEGREES: out-lists, or in-lists where the store
// has no others or both are the same.
func (x *execution) listDirection() layout.Direction {
	if x.engine.hasDirection(layout.Out) && !x.engine.meta().Undirected {
		return layout.Out
	}
	return layout.In
}

// edgeType returns the number of the type VIA names, or -1 without VIA.
func (x *execution) edgeType() (int, error) {
	v, ok := x.args["VIA"]
	if !ok {
		return -1, nil
	}
	types := x.engine.meta().EdgeTypes
	if i := slices.Index(types, v.text); i >= 0 {
		return i, nil
	}
	if len(types) == 0 {
		return 0, fmt.Errorf("VIA %s: the edges of this store have no types", v.text)
	}
	return 0, fmt.Errorf("VIA %s: no such edge type%s; DESCRIBE TYPES lists them", v.text,
		near(v.text, types))
}

func runNeighbors(ctx context.Context, x *execution) error {
	nodes, err := x.engine.resolve(ctx, x.operand.nodes)
	if err != nil {
		return err
	}
	via, err := x.edgeType()
	if err != nil {
		return err
	}
	if x.has("HOPS") || x.has("COUNT") {
		return x.hops(ctx, nodes, via)
	}
	return x.lists(ctx, nodes, via)
}

// lists shows the neighbors of each node with what runs parallel to them.
func (x *execution) lists(ctx context.Context, nodes []layout.NodeID, via int) error {
	m, limit := x.engine.meta(), x.intOr("LIMIT", math.MaxInt64)
	cols := []string{"node", "direction", "neighbor"}
	for _, c := range []struct {
		name string
		has  bool
	}{{"type", len(m.EdgeTypes) > 0}, {"weight", m.Weighted}, {"time", m.Timestamped}} {
		if c.has {
			cols = append(cols, c.name)
		}
	}
	if err := x.header(cols...); err != nil {
		return err
	}
	for _, dir := range x.directions(x.listDirection()) {
		t, err := x.engine.topology(ctx, dir)
		if err != nil {
			return err
		}
		ses := t.NewSession()
		for i := 0; i < len(nodes) && int64(x.rows) < limit && err == nil; i++ {
			err = x.list(ctx, ses, nodes[i:i+1], dir, via, limit)
		}
		ses.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) list(ctx context.Context, ses layout.Session, node []layout.NodeID,
	dir layout.Direction, via int, limit int64) error {
	l, err := ses.Lists(ctx, node)
	if err != nil {
		return err
	}
	name, err := x.engine.names(ctx, node)
	if err != nil {
		return err
	}
	at := 0
	return x.engine.inBatches(ctx, l.Nbrs, func(part []layout.NodeID, names []string) error {
		for i := range part {
			k := at + i
			if int64(x.rows) >= limit {
				break
			}
			if via >= 0 && int(l.Types[k]) != via {
				continue
			}
			if err := x.row(x.edgeCells(name[0], dir, names[i], l, k)...); err != nil {
				return err
			}
		}
		at += len(part)
		return nil
	})
}

func (x *execution) edgeCells(node string, dir layout.Direction, nbr string, l *layout.Lists,
	k int) []any {
	cells := []any{node, dir.String(), nbr}
	if l.Types != nil {
		cells = append(cells, x.engine.meta().EdgeTypes[l.Types[k]])
	}
	if l.Weights != nil {
		cells = append(cells, l.Weights[k])
	}
	if l.Times != nil {
		cells = append(cells, l.Times[k])
	}
	return cells
}

// hops collects all nodes within HOPS hops; each is met once. Memory: the visited set, a roaring
// bitmap, and one frontier.
func (x *execution) hops(ctx context.Context, nodes []layout.NodeID, via int) error {
	visited := roaring.New()
	for _, v := range nodes {
		visited.Add(uint32(v))
	}
	hops, limit := x.intOr("HOPS", 1), x.intOr("LIMIT", math.MaxInt64)
	if hops < 1 || hops > 64 {
		return fmt.Errorf("HOPS %d: want 1 to 64", hops)
	}
	cols := []string{"hop", "node"}
	if x.has("COUNT") {
		cols = []string{"hop", "nodes", "total"}
	}
	if err := x.header(cols...); err != nil {
		return err
	}
	total := uint64(0)
	for hop := int64(1); hop <= hops && len(nodes) > 0; hop++ {
		next, err := x.expand(ctx, nodes, visited, via)
		if err != nil {
			return err
		}
		visited.Or(next)
		nodes = slices.Grow(nodes[:0], int(next.GetCardinality()))
		for it := next.Iterator(); it.HasNext(); {
			nodes = append(nodes, layout.NodeID(it.Next()))
		}
		total += uint64(len(nodes))
		if err := x.hopRows(ctx, hop, nodes, total, limit); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) hopRows(ctx context.Context, hop int64, nodes []layout.NodeID, total uint64,
	limit int64) error {
	if x.has("COUNT") {
		return x.row(hop, len(nodes), total)
	}
	if left := limit - int64(x.rows); int64(len(nodes)) > left {
		nodes = nodes[:left]
	}
	return x.engine.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		for _, name := range names {
			if err := x.row(hop, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// expand returns the neighbors of a frontier that were not visited.
func (x *execution) expand(ctx context.Context, frontier []layout.NodeID, visited *roaring.Bitmap,
	via int) (*roaring.Bitmap, error) {
	next := roaring.New()
	for _, dir := range x.directions(x.listDirection()) {
		t, err := x.engine.topology(ctx, dir)
		if err != nil {
			return nil, err
		}
		ses := t.NewSession()
		for rest := frontier; len(rest) > 0 && err == nil; {
			part := rest[:min(len(rest), nodeBatch)]
			rest = rest[len(part):]
			var l *layout.Lists
			if l, err = ses.Lists(ctx, part); err == nil {
				addNeighbors(next, l, via)
			}
		}
		ses.Release()
		if err != nil {
			return nil, err
		}
	}
	next.AndNot(visited)
	return next, nil
}

func addNeighbors(set *roaring.Bitmap, l *layout.Lists, via int) {
	for k, v := range l.Nbrs {
		if via < 0 || int(l.Types[k]) == via {
			set.Add(uint32(v))
		}
	}
}

func runDegrees(ctx context.Context, x *execution) error {
	switch {
	case x.has("OF"):
		return x.degreesOf(ctx)
	case x.has("TOP"):
		return x.degreesTop(ctx)
	}
	return x.degreeHistogram()
}

func (x *execution) degreesOf(ctx context.Context) error {
	nodes, err := x.engine.resolve(ctx, x.args["OF"].nodes)
	if err != nil {
		return err
	}
	if err := x.header("node", "direction", "degree"); err != nil {
		return err
	}
	for _, dir := range x.directions(x.listDirection()) {
		t, err := x.engine.topology(ctx, dir)
		if err != nil {
			return err
		}
		ses := t.NewSession()
		deg := make([]uint32, nodeBatch)
		err = x.engine.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
			if err := ses.Degrees(ctx, part, deg[:len(part)]); err != nil {
				return err
			}
			for i, name := range names {
				if err := x.row(name, dir.String(), deg[i]); err != nil {
					return err
				}
			}
			return nil
		})
		ses.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// degreesTop scans the lists once and keeps the highest degrees: O(TOP) memory.
func (x *execution) degreesTop(ctx context.Context) error {
	most := int(x.args["TOP"].n)
	if most < 1 || most > 1<<20 {
		return fmt.Errorf("TOP %d: want 1 to %d", most, 1<<20)
	}
	dir := x.directions(x.listDirection())[0]
	if x.has("BOTH") {
		return fmt.Errorf("DEGREES TOP wants IN or OUT, not BOTH")
	}
	if !x.engine.hasDirection(dir) {
		_, err := x.engine.topology(ctx, dir)
		return err
	}
	top := &topDegrees{most: most}
	err := x.engine.store.ScanTopology(ctx, x.engine.dev, dir,
		func(first layout.NodeID, cont bool, l *layout.Lists) error {
			for i := range len(l.Off) - 1 {
				top.add(first+layout.NodeID(i), l.Off[i+1]-l.Off[i], cont && i == 0)
			}
			return ctx.Err()
		})
	if err != nil {
		return err
	}
	if err := x.header("node", "direction", "degree"); err != nil {
		return err
	}
	for _, d := range top.sorted() {
		name, err := x.engine.names(ctx, []layout.NodeID{d.node})
		if err != nil {
			return err
		}
		if err := x.row(name[0], dir.String(), d.degree); err != nil {
			return err
		}
	}
	return nil
}

type nodeDegree struct {
	node   layout.NodeID
	degree uint64
}

// topDegrees keeps the most highest degrees: it sorts and cuts when twice as many came.
type topDegrees struct {
	most int
	list []nodeDegree
}

func (t *topDegrees) add(v layout.NodeID, degree uint64, more bool) {
	if n := len(t.list); more && n > 0 && t.list[n-1].node == v {
		t.list[n-1].degree += degree
		return
	}
	if len(t.list) >= 2*t.most+1 {
		t.list = t.sorted()
	}
	t.list = append(t.list, nodeDegree{v, degree})
}

func (t *topDegrees) sorted() []nodeDegree {
	slices.SortFunc(t.list, func(a, b nodeDegree) int {
		switch {
		case a.degree != b.degree && a.degree > b.degree:
			return -1
		case a.degree != b.degree:
			return 1
		}
		return int(int64(a.node) - int64(b.node))
	})
	return t.list[:min(len(t.list), t.most)]
}

// degreeHistogram shows the counts that ingest kept; nothing is read.
func (x *execution) degreeHistogram() error {
	if err := x.header("direction", "degrees", "nodes", "share"); err != nil {
		return err
	}
	m := x.engine.meta()
	for _, dir := range x.directions(x.listDirection()) {
		hist := m.Stats.InHist
		if dir == layout.Out {
			hist = m.Stats.OutHist
		}
		for i, n := range hist {
			err := x.row(dir.String(), degreeRange(i), n, float64(n)/float64(max(m.Nodes, 1)))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// degreeRange names bin i of a degree histogram; see kv.GraphStats.
func degreeRange(i int) string {
	switch i {
	case 0:
		return "0"
	case 1:
		return "1"
	}
	return fmt.Sprintf("%d..%d", uint64(1)<<(i-1), uint64(1)<<i-1)
}

func runStatsGraph(_ context.Context, x *execution) error {
	m := x.engine.meta()
	if err := x.header("name", "value"); err != nil {
		return err
	}
	for _, r := range graphRows(m) {
		if err := x.row(r[0], r[1]); err != nil {
			return err
		}
	}
	return nil
}

func graphRows(m *kv.Meta) [][2]any {
	rows := [][2]any{{"nodes", m.Nodes}, {"edges", m.Edges}, {"undirected", m.Undirected},
		{"edge types", len(m.EdgeTypes)}, {"partitions", len(m.Partitions)},
		{"in-degree max", m.Stats.InMax}, {"out-degree max", m.Stats.OutMax},
		{"self loops", m.Stats.SelfLoops}, {"edges read", m.Stats.EdgesRead},
		{"dropped self loops", m.Stats.DroppedSelfLoops},
		{"dropped duplicates", m.Stats.DroppedDuplicates}}
	size := int64(0)
	for _, f := range m.Files {
		size += f.Size
	}
	for _, f := range m.Features {
		rows = append(rows, [2]any{"features " + f.Name, fmt.Sprintf("%d x %s", f.Dim, f.DType)})
	}
	return append(rows, [2]any{"files", len(m.Files)}, [2]any{"bytes", size})
}
