package query

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"strings"

	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/words"
)

// degrees runs DEGREES: it shows the degrees of given nodes, the highest degrees, or a histogram.
type degrees struct {
	x    *exec.Execution
	dirs []layout.Direction
	via  int

	nodes *exec.Find     // with OF
	of    exec.Lists     // with OF
	scan  exec.Scan      // with TOP, and for histograms that ingest has not counted
	top   *exec.Operator // with TOP
	names exec.Names
}

func planDegrees(x *exec.Execution) (*exec.Plan, error) {
	d := &degrees{x: x, dirs: x.Directions(x.ListDirection())}
	var err error
	if d.via, err = x.EdgeType(); err != nil {
		return nil, err
	}
	if err := x.Graph.CheckDirections(d.dirs); err != nil {
		return nil, err
	}
	x.WarnApart()
	if x.Has("OF") {
		return d.planOf()
	}
	d.scan = x.Scan(d.dirs, d.via)
	switch {
	case x.Has("TOP"):
		most := min(float64(x.Args["TOP"].N), d.scan.Rows)
		d.top = x.Operator("top", "highest degrees", most, 0, d.scan.Operator)
		d.names = x.Names(d.top)
		return &exec.Plan{Root: d.names.Operator, Run: d.runTop}, nil
	case x.Has("BINS"):
		return &exec.Plan{Run: d.runHistogram, Root: x.Operator("histogram", "equal bins",
			float64(x.Args["BINS"].N), 0, d.scan.Operator)}, nil
	case d.via >= 0:
		return &exec.Plan{Run: d.runHistogram, Root: x.Operator("histogram", "bins of powers of 2",
			-1, 0, d.scan.Operator)}, nil
	}
	return &exec.Plan{Run: d.runHistogram, Root: x.Operator("degree statistics",
		"counted at ingest", -1, 0)}, nil
}

func (d *degrees) planOf() (_ *exec.Plan, err error) {
	if d.nodes, err = d.x.Find("nodes", d.x.Args["OF"].Nodes); err != nil {
		return nil, err
	}
	e, blocks := d.x.Estimates(), 0.0
	for _, dir := range d.dirs {
		entries := 0.0
		if mean, _ := e.Degree(dir); d.via >= 0 {
			entries = mean * d.nodes.Rows
		}
		blocks += e.ListBlocks(dir, d.nodes.Rows, entries)
	}
	d.of = exec.Lists{Operator: d.x.Operator("degrees", d.x.ListsDetail(d.dirs, d.via),
		d.nodes.Rows*float64(len(d.dirs)), blocks, d.nodes.Operator)}
	d.names = d.x.Names(d.of.Operator)
	return &exec.Plan{Root: d.names.Operator, Run: d.runOf}, nil
}

var degreeColumns = []string{"node", "direction", "degree"}

// runOf shows the degrees of nodes.
func (d *degrees) runOf(ctx context.Context) error {
	nodes, err := d.nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	d.x.Header(degreeColumns...)
	for _, dir := range d.dirs {
		if d.via >= 0 {
			err = d.countType(ctx, dir, nodes)
		} else {
			err = d.lookUp(ctx, dir, nodes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds degrees without reading the lists.
func (d *degrees) lookUp(ctx context.Context, dir layout.Direction, nodes []layout.NodeID) error {
	t, err := d.x.Graph.Topology(ctx, dir)
	if err != nil {
		return err
	}
	ses := t.NewSession()
	defer ses.Release()
	deg, empty := make([]uint32, graph.NodeBatch), 0
	defer func() { d.x.WarnNoLists(empty, len(nodes)) }()
	return d.names.InBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		err := d.of.Run(ctx, func(ctx context.Context) error {
			return ses.Degrees(ctx, part, deg[:len(part)])
		})
		if err != nil {
			return err
		}
		d.of.Emit(len(part), 4*len(part))
		for i, name := range names {
			if deg[i] == 0 {
				empty++
			}
			d.x.Row(name, dir.String(), words.Count(deg[i]))
		}
		return d.x.Err()
	})
}

// countType counts the entries of a type in each list, one node at a time.
func (d *degrees) countType(ctx context.Context, dir layout.Direction,
	nodes []layout.NodeID) error {
	return d.names.InBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		for i, name := range names {
			degree := uint64(0)
			err := d.of.Each(ctx, dir, part[i:i+1], math.MaxInt64,
				func(_ []layout.NodeID, l *listfile.Lists) (bool, error) {
					degree += ofTypeCount(l, 0, d.via)
					return true, nil
				})
			if err != nil {
				return err
			}
			d.of.Emit(1, 0)
			d.x.Row(name, dir.String(), words.Count(degree))
		}
		return d.x.Err()
	})
}

// each calls fn with the degree of every node that was not deleted, in node order. It counts the
// entries of a type, or all entries.
func (d *degrees) each(ctx context.Context, dir layout.Direction,
	fn func(v layout.NodeID, degree uint64)) error {
	deleted, err := d.x.Graph.Deleted(ctx)
	if err != nil {
		return err
	}
	node, degree, begun := layout.NodeID(0), uint64(0), false
	tell := func() {
		if deleted == nil || !deleted.Contains(uint32(node)) {
			fn(node, degree)
		}
	}
	err = d.scan.Each(ctx, dir, func(first layout.NodeID, cont bool, l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			if begun && !(cont && i == 0) {
				tell()
				degree = 0
			}
			node, begun = first+layout.NodeID(i), true
			degree += ofTypeCount(l, i, d.via)
		}
		return nil
	})
	if err == nil && begun {
		tell()
	}
	return err
}

// ofTypeCount returns the number of entries of list i that have a type, or of all entries if via is
// -1.
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

// runTop finds the highest degrees in one scan, in O(TOP) memory.
func (d *degrees) runTop(ctx context.Context) error {
	top := &topDegrees{most: int(d.x.Args["TOP"].N)}
	room := min(2*uint64(top.most)+1, d.x.Graph.Meta().Nodes)
	const each = 16 + 4 // a nodeDegree, and its node once it is one of the highest
	if err := d.x.Hold("the highest degrees", each*int64(room)); err != nil {
		return err
	}
	top.list = make([]nodeDegree, 0, room)
	err := d.each(ctx, d.dirs[0], func(v layout.NodeID, n uint64) { top.add(ctx, v, n) })
	if err != nil {
		return err
	}
	d.x.Header(degreeColumns...)
	highest := top.sorted(ctx)
	d.top.Emit(len(highest), 0)
	nodes := make([]layout.NodeID, len(highest))
	for i, n := range highest {
		nodes[i] = n.node
	}
	return d.names.InBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		for i, name := range names {
			d.x.Row(name, d.dirs[0].String(), words.Count(highest[i].degree))
		}
		highest = highest[len(part):]
		return d.x.Err()
	})
}

// runHistogram shows how many nodes have which degrees. Ingest has counted degrees by powers of 2;
// counting for one type, or in bins of equal width, takes a scan.
func (d *degrees) runHistogram(ctx context.Context) error {
	cols := []string{"direction", "degrees", "nodes", "share"}
	if d.x.Has("LOG") {
		cols = append(cols, "bar")
	}
	d.x.Header(cols...)
	nodes, _, err := d.x.Graph.There(ctx)
	if err != nil {
		return err
	}
	for _, dir := range d.dirs {
		hist, bin, err := d.histogram(ctx, dir)
		if err != nil {
			return err
		}
		most := max(slices.Max(append(hist, 0)), 1)
		for i, n := range hist {
			cells := []any{dir.String(), bin(i), words.Count(n),
				words.Ratio(float64(n) / float64(max(nodes, 1)))}
			if d.x.Has("LOG") {
				cells = append(cells, strings.Repeat("█", int((n*barWidth+most-1)/most)))
			}
			d.x.Row(cells...)
		}
	}
	return nil
}

// barWidth is the longest bar, in characters.
const barWidth = 20

// histogram returns counts of nodes by degree, and a function that names each bin.
func (d *degrees) histogram(ctx context.Context, dir layout.Direction) (hist []uint64,
	bin func(int) string, err error) {
	stats, err := d.x.Graph.Stats(ctx)
	if err != nil {
		return nil, nil, err
	}
	hist, most := stats.InHist, stats.InMax
	if dir == layout.Out {
		hist, most = stats.OutHist, stats.OutMax
	}
	if d.x.Has("BINS") {
		n := uint64(d.x.Args["BINS"].N)
		width := max((most+n)/n, 1) // most+1 degrees in n bins
		hist = make([]uint64, (most+width)/width)
		err = d.each(ctx, dir, func(_ layout.NodeID, degree uint64) {
			hist[min(degree/width, uint64(len(hist)-1))]++
		})
		return hist, func(i int) string {
			return words.Span(uint64(i)*width, uint64(i+1)*width-1)
		}, err
	}
	if d.via >= 0 {
		hist = nil
		err = d.each(ctx, dir, func(_ layout.NodeID, degree uint64) {
			i := bits.Len64(degree)
			for len(hist) <= i {
				hist = append(hist, 0)
			}
			hist[i]++
		})
	}
	return hist, words.DegreeBin, err
}

type nodeDegree struct {
	node   layout.NodeID
	degree uint64
}

// topDegrees keeps the highest degrees, at most most of them. It sorts and cuts its list when twice
// that number has come.
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

// sorted returns the highest degrees, at most most of them. Once ctx is done it returns any
// degrees.
func (t *topDegrees) sorted(ctx context.Context) []nodeDegree {
	_ = pace.SortFunc(ctx, t.list, func(a, b nodeDegree) int {
		return cmp.Or(cmp.Compare(b.degree, a.degree), cmp.Compare(a.node, b.node))
	})
	return t.list[:min(len(t.list), t.most)]
}
