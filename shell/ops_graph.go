package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
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
	nodes, err := x.engine.resolve(ctx, x.operand.nodes, x.seed())
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
	x.header(cols...)
	for _, dir := range x.directions(x.listDirection()) {
		err := x.engine.eachList(ctx, dir, nodes, limit, func(part []layout.NodeID,
			l *layout.Lists) (bool, error) {
			return x.listRows(ctx, part, l, dir, via, limit)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listRows shows the lists l of nodes until there are limit rows; it returns whether to go on.
func (x *execution) listRows(ctx context.Context, nodes []layout.NodeID, l *layout.Lists,
	dir layout.Direction, via int, limit int64) (bool, error) {
	names, err := x.engine.names(ctx, nodes)
	if err != nil {
		return false, err
	}
	i, end := 0, uint64(len(l.Nbrs))
	for from := uint64(0); from < end && int64(x.rows) < limit; from += nodeBatch {
		nbrs, err := x.engine.names(ctx, l.Nbrs[from:min(from+nodeBatch, end)])
		if err != nil {
			return false, err
		}
		for j, nbr := range nbrs {
			k := from + uint64(j)
			for k >= l.Off[i+1] {
				i++
			}
			if via >= 0 && int(l.Types[k]) != via {
				continue
			}
			if int64(x.rows) >= limit {
				break
			}
			if err := x.row(x.edgeCells(names[i], dir, nbr, l, int(k))...); err != nil {
				return false, err
			}
		}
	}
	return int64(x.rows) < limit, nil
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
	hops, limit := x.intOr("HOPS", 1), x.intOr("LIMIT", math.MaxInt64)
	if hops < 1 || hops > 64 {
		return fmt.Errorf("HOPS %d: want 1 to 64", hops)
	}
	visited := roaring.New()
	visited.AddMany(mem.View[uint32](mem.BytesOf(nodes)))
	cols := []string{"hop", "node"}
	if x.has("COUNT") {
		cols = []string{"hop", "nodes", "total"}
	}
	x.header(cols...)
	total := uint64(0)
	for hop := int64(1); hop <= hops && len(nodes) > 0 && int64(x.rows) < limit; hop++ {
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
		return x.row(hop, count(len(nodes)), count(total))
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
		err := x.engine.eachList(ctx, dir, frontier, math.MaxInt64, func(_ []layout.NodeID,
			l *layout.Lists) (bool, error) {
			addNeighbors(next, l, via)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	next.AndNot(visited)
	return next, nil
}

func addNeighbors(set *roaring.Bitmap, l *layout.Lists, via int) {
	if via < 0 {
		set.AddMany(mem.View[uint32](mem.BytesOf(l.Nbrs)))
		return
	}
	for k, v := range l.Nbrs {
		if int(l.Types[k]) == via {
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
	nodes, err := x.engine.resolve(ctx, x.args["OF"].nodes, x.seed())
	if err != nil {
		return err
	}
	x.header("node", "direction", "degree")
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
				if err := x.row(name, dir.String(), count(deg[i])); err != nil {
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
	if x.has("BOTH") {
		return errors.New("TOP wants IN or OUT, not BOTH")
	}
	dir := x.directions(x.listDirection())[0]
	if err := x.engine.checkDirection(dir); err != nil {
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
	x.header("node", "direction", "degree")
	for _, d := range top.sorted() {
		name, err := x.engine.names(ctx, []layout.NodeID{d.node})
		if err != nil {
			return err
		}
		if err := x.row(name[0], dir.String(), count(d.degree)); err != nil {
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
		return cmp.Or(cmp.Compare(b.degree, a.degree), cmp.Compare(a.node, b.node))
	})
	return t.list[:min(len(t.list), t.most)]
}

// degreeHistogram shows the counts that ingest kept; nothing is read.
func (x *execution) degreeHistogram() error {
	x.header("direction", "degrees", "nodes", "share")
	m := x.engine.meta()
	for _, dir := range x.directions(x.listDirection()) {
		if err := x.engine.checkDirection(dir); err != nil {
			return err
		}
		hist := m.Stats.InHist
		if dir == layout.Out {
			hist = m.Stats.OutHist
		}
		for i, n := range hist {
			err := x.row(dir.String(), degreeRange(i), count(n),
				ratio(float64(n)/float64(max(m.Nodes, 1))))
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
	x.header("name", "value")
	for _, r := range graphRows(m) {
		if err := x.row(r[0], r[1]); err != nil {
			return err
		}
	}
	return nil
}

func graphRows(m *kv.Meta) [][2]any {
	rows := [][2]any{{"nodes", count(m.Nodes)}, {"edges", count(m.Edges)},
		{"undirected", m.Undirected}, {"edge types", count(len(m.EdgeTypes))},
		{"partitions", count(len(m.Partitions))}, {"in-degree max", count(m.Stats.InMax)}}
	if len(m.Stats.OutHist) > 0 {
		rows = append(rows, [2]any{"out-degree max", count(m.Stats.OutMax)})
	}
	rows = append(rows, [2]any{"self loops", count(m.Stats.SelfLoops)},
		[2]any{"edges read", count(m.Stats.EdgesRead)},
		[2]any{"dropped self loops", count(m.Stats.DroppedSelfLoops)},
		[2]any{"dropped duplicates", count(m.Stats.DroppedDuplicates)})
	total := int64(0)
	for _, f := range m.Files {
		total += f.Size
	}
	for _, f := range m.Features {
		rows = append(rows, [2]any{"features " + f.Name, fmt.Sprintf("%d x %s", f.Dim, f.DType)})
	}
	return append(rows, [2]any{"files", count(len(m.Files))},
		[2]any{"bytes", size(total)})
}
