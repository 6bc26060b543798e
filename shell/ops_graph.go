package shell

import (
	"cmp"
	"context"
	"errors"
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

func planNeighbors(x *execution) (*operator, error) {
	via, err := x.edgeType()
	if err != nil {
		return nil, err
	}
	nodes, err := x.opNodes("nodes", x.operand.nodes)
	if err != nil {
		return nil, err
	}
	dirs := x.directions(x.listDirection())
	if err := x.engine.checkDirections(dirs); err != nil {
		return nil, err
	}
	if !x.has("HOPS") && !x.has("COUNT") {
		return x.opNames(x.opHops(func(int) string { return "neighbors" }, 1, dirs, via, false,
			nodes)), nil
	}
	hops := x.intOr("HOPS", 1)
	if hops < 1 || hops > hopsMost {
		return nil, fmt.Errorf("HOPS %d: want 1 to %d", hops, hopsMost)
	}
	met := x.opHops(hopOperator, int(hops), dirs, via, true, nodes)
	if x.has("COUNT") {
		return newOperator("distinct count", "", float64(hops), 0, met), nil
	}
	return x.opNames(met), nil
}

// hopsMost is the largest HOPS.
const hopsMost = 64

// hopOperator names the operator of a hop.
func hopOperator(hop int) string { return fmt.Sprintf("hop %d", hop) }

func runNeighbors(ctx context.Context, x *execution) error {
	nodes, err := x.resolve(ctx, "nodes", x.operand.nodes)
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
		err := x.eachList(ctx, "neighbors", dir, nodes, limit, func(part []layout.NodeID,
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
	names, err := x.names(ctx, nodes)
	if err != nil {
		return false, err
	}
	i, end := 0, uint64(len(l.Nbrs))
	for from := uint64(0); from < end && int64(x.rows) < limit; from += nodeBatch {
		nbrs, err := x.names(ctx, l.Nbrs[from:min(from+nodeBatch, end)])
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
			x.emit("neighbors", 1, 0)
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
	visited := roaring.New()
	visited.AddMany(numbers(nodes))
	cols := []string{"hop", "node"}
	if x.has("COUNT") {
		cols = []string{"hop", "nodes", "total"}
	}
	x.header(cols...)
	total := uint64(0)
	for hop := int64(1); hop <= hops && len(nodes) > 0 && int64(x.rows) < limit; hop++ {
		next, err := x.expand(ctx, hopOperator(int(hop)), nodes, visited, via)
		if err != nil {
			return err
		}
		visited.Or(next)
		nodes = slices.Grow(nodes[:0], int(next.GetCardinality()))
		for it := next.Iterator(); it.HasNext(); {
			nodes = append(nodes, layout.NodeID(it.Next()))
		}
		total += uint64(len(nodes))
		x.root.in = count(total)
		x.emit(hopOperator(int(hop)), len(nodes), 0)
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
	return x.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		for _, name := range names {
			if err := x.row(hop, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// expand returns the neighbors of a frontier that were not visited.
func (x *execution) expand(ctx context.Context, name string, frontier []layout.NodeID,
	visited *roaring.Bitmap, via int) (*roaring.Bitmap, error) {
	next := roaring.New()
	for _, dir := range x.directions(x.listDirection()) {
		err := x.eachList(ctx, name, dir, frontier, math.MaxInt64, func(_ []layout.NodeID,
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
		set.AddMany(numbers(l.Nbrs))
		return
	}
	for k, v := range l.Nbrs {
		if int(l.Types[k]) == via {
			set.Add(uint32(v))
		}
	}
}

func planDegrees(x *execution) (*operator, error) {
	e, dirs := estimator{x.engine.meta()}, x.directions(x.listDirection())
	if err := x.engine.checkDirections(dirs); err != nil {
		return nil, err
	}
	switch {
	case x.has("OF"):
		nodes, err := x.opNodes("nodes", x.args["OF"].nodes)
		if err != nil {
			return nil, err
		}
		blocks := 0.0
		for _, dir := range dirs {
			blocks += e.listBlocks(dir, nodes.rows, 0)
		}
		return x.opNames(newOperator("degrees", x.listsDetail(dirs, -1),
			nodes.rows*float64(len(dirs)), blocks, nodes)), nil
	case x.has("TOP"):
		most := x.args["TOP"].n
		if most < 1 || most > degreesMost {
			return nil, fmt.Errorf("TOP %d: want 1 to %d", most, degreesMost)
		}
		if x.has("BOTH") {
			return nil, errors.New("TOP wants IN or OUT, not BOTH")
		}
		path, _ := layout.TopologyPaths(dirs[0])
		all := float64(e.meta.Nodes)
		scan := newOperator("scan", path, all, e.fileBlocks(path, e.meta.BlockBytes))
		return x.opNames(newOperator("top", "highest degrees", min(float64(most), all), 0,
			scan)), nil
	}
	return newOperator("degree statistics", "counted at ingest", -1, 0), nil
}

// degreesMost is the largest TOP.
const degreesMost = 1 << 20

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
	nodes, err := x.resolve(ctx, "nodes", x.args["OF"].nodes)
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
		err = x.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
			inner, leave := x.enter(ctx, "degrees")
			err := ses.Degrees(inner, part, deg[:len(part)])
			leave()
			if err != nil {
				return err
			}
			x.emit("degrees", len(part), 4*len(part))
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
	most, dir := int(x.args["TOP"].n), x.directions(x.listDirection())[0]
	top := &topDegrees{most: most}
	inner, leave := x.enter(ctx, "scan")
	err := x.engine.store.ScanTopology(inner, x.engine.dev, dir,
		func(first layout.NodeID, cont bool, l *layout.Lists) error {
			for i := range len(l.Off) - 1 {
				top.add(first+layout.NodeID(i), l.Off[i+1]-l.Off[i], cont && i == 0)
			}
			x.emit("scan", len(l.Off)-1, 4*len(l.Nbrs))
			return ctx.Err()
		})
	leave()
	if err != nil {
		return err
	}
	x.header("node", "direction", "degree")
	highest := top.sorted()
	x.emit("top", len(highest), 0)
	for _, d := range highest {
		name, err := x.names(ctx, []layout.NodeID{d.node})
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
