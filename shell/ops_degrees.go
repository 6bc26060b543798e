package shell

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"gdb/layout/listfile"
	"gdb/shell/graph"
	"gdb/shell/result"

	"gdb/internal/pace"
	"gdb/layout"
)

func planDegrees(x *execution) (*operator, error) {
	via, err := x.edgeType()
	if err != nil {
		return nil, err
	}
	dirs := x.directions(x.listDirection())
	if err := x.engine.CheckDirections(dirs); err != nil {
		return nil, err
	}
	scan := x.opScan(dirs, via)
	switch {
	case x.Has("OF"):
		return x.planDegreesOf(dirs, via)
	case x.Has("TOP"):
		most := min(float64(x.Args["TOP"].N), scan.rows)
		return x.opNames(newOperator("top", "highest degrees", most, 0, scan)), nil
	case x.Has("BINS"):
		return newOperator("histogram", "equal bins", float64(x.Args["BINS"].N), 0, scan), nil
	case via >= 0:
		return newOperator("histogram", "bins of powers of 2", -1, 0, scan), nil
	}
	return newOperator("degree statistics", "counted at ingest", -1, 0), nil
}

func (x *execution) planDegreesOf(dirs []layout.Direction, via int) (*operator, error) {
	nodes, err := x.opNodes("nodes", x.Args["OF"].Nodes)
	if err != nil {
		return nil, err
	}
	e, blocks := estimator{x.engine.Meta()}, 0.0
	for _, dir := range dirs {
		entries := 0.0
		if mean, _ := e.degree(dir); via >= 0 {
			entries = mean * nodes.rows
		}
		blocks += e.listBlocks(dir, nodes.rows, entries)
	}
	return x.opNames(newOperator("degrees", x.listsDetail(dirs, via),
		nodes.rows*float64(len(dirs)), blocks, nodes)), nil
}

// opScan is the operator that reads all lists in order.
func (x *execution) opScan(dirs []layout.Direction, via int) *operator {
	e, blocks := estimator{x.engine.Meta()}, 0.0
	for _, dir := range dirs {
		path, _ := layout.TopologyPaths(dir)
		blocks += e.fileBlocks(path, e.meta.BlockBytes)
	}
	return newOperator("scan", "whole file, "+x.listsDetail(dirs, via),
		float64(e.meta.Nodes)*float64(len(dirs)), blocks)
}

func runDegrees(ctx context.Context, x *execution) error {
	via, err := x.edgeType()
	if err != nil {
		return err
	}
	dirs := x.directions(x.listDirection())
	switch {
	case x.Has("OF") && via >= 0:
		return x.degreesOfType(ctx, dirs, via)
	case x.Has("OF"):
		return x.degreesOf(ctx, dirs)
	case x.Has("TOP"):
		return x.degreesTop(ctx, dirs[0], via)
	}
	return x.degreeHistogram(ctx, dirs, via)
}

// degreesOf finds degrees without reading the lists.
func (x *execution) degreesOf(ctx context.Context, dirs []layout.Direction) error {
	nodes, err := x.resolve(ctx, "nodes", x.Args["OF"].Nodes)
	if err != nil {
		return err
	}
	x.header(degreeColumns...)
	for _, dir := range dirs {
		t, err := x.engine.Topology(ctx, dir)
		if err != nil {
			return err
		}
		ses := t.NewSession()
		deg := make([]uint32, graph.NodeBatch)
		err = x.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
			inner, leave := x.enter(ctx, "degrees")
			err := ses.Degrees(inner, part, deg[:len(part)])
			leave()
			if err != nil {
				return err
			}
			x.emit("degrees", len(part), 4*len(part))
			for i, name := range names {
				if err := x.row(name, dir.String(), result.Count(deg[i])); err != nil {
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

var degreeColumns = []string{"node", "direction", "degree"}

// degreesOfType counts the entries of a type in each list, one node at a time.
func (x *execution) degreesOfType(ctx context.Context, dirs []layout.Direction, via int) error {
	nodes, err := x.resolve(ctx, "nodes", x.Args["OF"].Nodes)
	if err != nil {
		return err
	}
	x.header(degreeColumns...)
	for _, dir := range dirs {
		err := x.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
			for i, name := range names {
				degree := uint64(0)
				err := x.eachList(ctx, "degrees", dir, part[i:i+1], math.MaxInt64,
					func(_ []layout.NodeID, l *listfile.Lists) (bool, error) {
						degree += ofTypeCount(l, 0, via)
						return true, nil
					})
				if err != nil {
					return err
				}
				x.emit("degrees", 1, 0)
				if err := x.row(name, dir.String(), result.Count(degree)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scan calls fn with the degree of every node, counting entries of a type or all, in node order.
func (x *execution) scan(ctx context.Context, dir layout.Direction, via int,
	fn func(v layout.NodeID, degree uint64)) error {
	ctx, leave := x.enter(ctx, "scan")
	defer leave()
	node, degree, begun := layout.NodeID(0), uint64(0), false
	err := listfile.Scan(ctx, x.engine.Store, x.engine.Dev, dir,
		func(first layout.NodeID, cont bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				if begun && !(cont && i == 0) {
					fn(node, degree)
					degree = 0
				}
				node, begun = first+layout.NodeID(i), true
				degree += ofTypeCount(l, i, via)
			}
			x.emit("scan", len(l.Off)-1, 4*len(l.Nbrs))
			return ctx.Err()
		})
	if err == nil && begun {
		fn(node, degree)
	}
	return err
}

// ofTypeCount is the number of entries of list i that have a type, or of all for -1.
func ofTypeCount(l *listfile.Lists, i, via int) (n uint64) {
	if via < 0 {
		return l.Off[i+1] - l.Off[i]
	}
	for _, t := range l.Types[l.Off[i]:l.Off[i+1]] {
		if int(t) == via {
			n++
		}
	}
	return n
}

// degreesTop keeps the highest degrees of one scan: O(TOP) memory.
func (x *execution) degreesTop(ctx context.Context, dir layout.Direction, via int) error {
	top := &topDegrees{most: int(x.Args["TOP"].N)}
	room := min(2*uint64(top.most)+1, x.engine.Meta().Nodes)
	const each = 16 + 4 // a nodeDegree, and its node once it is one of the highest
	if err := x.hold("the highest degrees", each*int64(room)); err != nil {
		return err
	}
	top.list = make([]nodeDegree, 0, room)
	err := x.scan(ctx, dir, via, func(v layout.NodeID, degree uint64) { top.add(ctx, v, degree) })
	if err != nil {
		return err
	}
	x.header(degreeColumns...)
	highest := top.sorted(ctx)
	x.emit("top", len(highest), 0)
	nodes := make([]layout.NodeID, len(highest))
	for i, d := range highest {
		nodes[i] = d.node
	}
	return x.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		for i, name := range names {
			if err := x.row(name, dir.String(), result.Count(highest[i].degree)); err != nil {
				return err
			}
		}
		highest = highest[len(part):]
		return nil
	})
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

func (t *topDegrees) add(ctx context.Context, v layout.NodeID, degree uint64) {
	if len(t.list) >= 2*t.most+1 {
		t.list = t.sorted(ctx)
	}
	t.list = append(t.list, nodeDegree{v, degree})
}

// sorted are the most highest; once ctx is done, any.
func (t *topDegrees) sorted(ctx context.Context) []nodeDegree {
	_ = pace.SortFunc(ctx, t.list, func(a, b nodeDegree) int {
		return cmp.Or(cmp.Compare(b.degree, a.degree), cmp.Compare(a.node, b.node))
	})
	return t.list[:min(len(t.list), t.most)]
}

// degreeHistogram shows how many nodes have which degrees. The counts of powers of 2 were kept at
// ingest; those of a type, and of equal bins, take a scan.
func (x *execution) degreeHistogram(ctx context.Context, dirs []layout.Direction, via int) error {
	cols := []string{"direction", "degrees", "nodes", "share"}
	if x.Has("LOG") {
		cols = append(cols, "bar")
	}
	x.header(cols...)
	for _, dir := range dirs {
		hist, bin, err := x.histogram(ctx, dir, via)
		if err != nil {
			return err
		}
		most := max(slices.Max(append(hist, 0)), 1)
		for i, n := range hist {
			cells := []any{dir.String(), bin(i), result.Count(n),
				result.Ratio(float64(n) / float64(max(x.engine.Meta().Nodes, 1)))}
			if x.Has("LOG") {
				cells = append(cells, strings.Repeat("█", int((n*barWidth+most-1)/most)))
			}
			if err := x.row(cells...); err != nil {
				return err
			}
		}
	}
	return nil
}

// barWidth is the longest bar, in characters.
const barWidth = 20

// histogram returns counts of nodes by degree, and the name of each bin.
func (x *execution) histogram(ctx context.Context, dir layout.Direction, via int) (hist []uint64,
	bin func(int) string, err error) {
	stats := x.engine.Meta().Stats
	hist, most := stats.InHist, stats.InMax
	if dir == layout.Out {
		hist, most = stats.OutHist, stats.OutMax
	}
	if x.Has("BINS") {
		n := uint64(x.Args["BINS"].N)
		width := max((most+n)/n, 1) // most+1 degrees in n bins
		hist = make([]uint64, (most+width)/width)
		err = x.scan(ctx, dir, via, func(_ layout.NodeID, degree uint64) {
			hist[min(degree/width, uint64(len(hist)-1))]++
		})
		return hist, func(i int) string {
			return degreeSpan(uint64(i)*width, uint64(i+1)*width-1)
		}, err
	}
	if via >= 0 {
		hist = nil
		err = x.scan(ctx, dir, via, func(_ layout.NodeID, degree uint64) {
			i := bits.Len64(degree)
			for len(hist) <= i {
				hist = append(hist, 0)
			}
			hist[i]++
		})
	}
	return hist, degreeRange, err
}

// degreeRange names bin i of a degree histogram; see kv.GraphStats.
func degreeRange(i int) string {
	if i == 0 {
		return "0"
	}
	return degreeSpan(1<<(i-1), 1<<i-1)
}

// degreeSpan names the degrees from lo to hi.
func degreeSpan(lo, hi uint64) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d..%d", lo, hi)
}
