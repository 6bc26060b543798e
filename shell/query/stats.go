package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/inspect"
	"gdb/layout/listfile"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/words"
)

func runStatsGraph(ctx context.Context, x *exec.Execution) error {
	m := x.Graph.Meta()
	stats, err := x.Graph.Stats(ctx)
	if err != nil {
		return err
	}
	growth, err := inspect.GrowthOf(ctx, x.Graph.Store)
	if err != nil {
		return err
	}
	x.WarnApart()
	x.Header("name", "value")
	x.Row("nodes", words.Count(m.Nodes))
	x.Row("edges", words.Count(m.Edges))
	for _, s := range m.EdgeSplits {
		x.Row("edges of "+s.Name, words.Count(s.Count))
	}
	x.Row("undirected", m.Undirected)
	x.Row("edge types", words.Count(len(m.EdgeTypes)))
	x.Row("partitions", words.Count(len(m.Partitions)))
	x.Row("in-degree max", words.Count(stats.InMax))
	if len(stats.OutHist) > 0 {
		x.Row("out-degree max", words.Count(stats.OutMax))
	}
	x.Row("self loops", words.Count(m.Stats.SelfLoops))
	x.Row("edges read", words.Count(m.Stats.EdgesRead))
	x.Row("dropped self loops", words.Count(m.Stats.DroppedSelfLoops))
	x.Row("dropped duplicates", words.Count(m.Stats.DroppedDuplicates))
	for _, f := range m.Features {
		x.Row("features "+f.Name, fmt.Sprintf("%d x %s", f.Dim, f.DType))
	}
	total := int64(0)
	for _, f := range m.Files {
		total += f.Size
	}
	x.Row("files", words.Count(len(m.Files)))
	x.Row("bytes", words.Size(total))
	growthRows(x, growth)
	return nil
}

// growthRows shows what the levels of a store cost.
func growthRows(x *exec.Execution, g *inspect.Growth) {
	if g == nil {
		return
	}
	x.Row("levels", words.Count(g.Levels))
	x.Row("nodes of levels", words.Count(g.Nodes))
	x.Row("edges of levels", words.Count(g.Edges))
	x.Row("edges taken away", words.Count(g.Gone))
	x.Row("deleted nodes", words.Count(g.Deleted))
	x.Row("pieces of a list", words.Ratio(g.Pieces))
	x.Row("bytes with levels", words.Size(g.Bytes))
	x.Row("bytes if compacted", words.Size(g.Compacted))
	x.Row("memory of levels", words.Size(g.Memory))
}

// share returns the share of part in whole, or nothing if whole is 0.
func share(part, whole uint64) any {
	if whole == 0 {
		return nil
	}
	return words.Ratio(float64(part) / float64(whole))
}

// skew returns how many times the mean of the parts one part is.
func skew(part, whole uint64, parts int) any {
	if whole == 0 {
		return nil
	}
	return float64(part) * float64(parts) / float64(whole)
}

// topped returns the numbers from 0 to n-1; with TOP only those of the largest counts, the largest
// first.
func topped(x *exec.Execution, n int, count func(i int) uint64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if x.Has("TOP") {
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(count(j), count(i)) })
		order = order[:min(int64(n), x.Args["TOP"].N)]
	}
	return order
}

// runStatsPartitions shows counts of each partition; with TOP, of those with the most edges.
func runStatsPartitions(_ context.Context, x *exec.Execution) error {
	x.WarnApart()
	x.Header("partition", "first node", "nodes", "in-edges", "share", "skew")
	m := x.Graph.Meta()
	parts := slices.Clone(m.Partitions)
	if len(parts) == 1 { // ingest has counted the base alone
		parts[0].Nodes, parts[0].Edges = m.Nodes, m.Edges
	}
	edges := func(i int) uint64 { return parts[i].Edges }
	for _, i := range topped(x, len(parts), edges) {
		p := parts[i]
		x.Row(i, fmt.Sprintf("#%d", p.First), words.Count(p.Nodes), words.Count(p.Edges),
			share(p.Edges, m.Edges), skew(p.Edges, m.Edges, len(parts)))
	}
	return nil
}

func runStatsIO(_ context.Context, x *exec.Execution) error {
	if by := x.Args["BY"].Text; by != "" {
		ioBy(x, by)
		return nil
	}
	x.Header("backend", "reads", "bytes", "errors", "wait_s")
	var sum graph.IOCounts
	for _, r := range x.Graph.Dev.By(func(graph.IOKey) string { return "" }) {
		sum.Add(r.IOCounts)
	}
	x.Row(string(x.Graph.Dev.Info().Backend), words.Count(sum.Reads), words.Size(sum.Bytes),
		words.Count(sum.Errors), sum.Wait.Seconds())
	return nil
}

func ioBy(x *exec.Execution, by string) {
	rows := x.Graph.Dev.By(func(k graph.IOKey) string {
		switch by {
		case "file":
			return k.File
		case "phase":
			return k.Phase
		}
		return k.Op
	})
	x.Header(by, "reads", "bytes", "errors", "wait_s")
	for _, r := range rows {
		x.Row(r.Name, words.Count(r.Reads), words.Size(r.Bytes), words.Count(r.Errors),
			r.Wait.Seconds())
	}
}

// traceLast is how many reads TRACE IO shows without LAST.
const traceLast = 20

// runTraceIO begins or ends recording, or shows what was recorded.
func runTraceIO(_ context.Context, x *exec.Execution) error {
	on, off := x.Has("ON"), x.Has("OFF")
	if on || off {
		x.Graph.Dev.Trace(on)
		x.Header("tracing")
		x.Row(map[bool]string{true: "on", false: "off"}[on])
		return nil
	}
	records, tracing := x.Graph.Dev.Last(int(min(x.IntOr("LAST", traceLast), graph.IORecordsMost)))
	if len(records) == 0 && !tracing {
		return errors.New("nothing was recorded: TRACE IO ON records reads from then on")
	}
	x.Header("at_ms", "op", "phase", "file", "offset", "bytes", "batch_ms", "failed")
	for _, r := range records {
		x.Row(float64(r.At.Sub(records[0].At).Microseconds())/1000, r.Op, r.Phase, r.File,
			r.Offset, words.Size(r.Bytes), float64(r.Wait.Microseconds())/1000, r.Failed)
	}
	return nil
}

// runResetStats lets the counters of STATS CACHE and STATS IO begin at zero again.
func runResetStats(_ context.Context, x *exec.Execution) error {
	x.Graph.Dev.Reset()
	x.Graph.ResetCaches()
	x.Header("counters")
	x.Row("reset")
	return nil
}

// Settings lists what SET can change.
var Settings = []string{"seed"}

// runSet changes a setting of the session.
func runSet(_ context.Context, x *exec.Execution) error {
	name, value := x.Operand.Text, x.Args["TO"].Text
	if !slices.Contains(Settings, name) {
		return fmt.Errorf("no setting %s%s; SET changes %s, and .settings shows all",
			words.Quoted(name),
			words.Near(name, Settings), strings.Join(Settings, ", "))
	}
	seed, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return fmt.Errorf("TO %s: a seed is a whole number from 0 on", words.Quoted(value))
	}
	x.Graph.SetSeed(seed)
	x.Header("setting", "value")
	x.Row(name, fmt.Sprint(seed))
	return nil
}

// bucketPartitionsMost bounds the counters of STATS BUCKETS: 8 bytes for each pair of partitions.
const bucketPartitionsMost = 2048

// buckets runs STATS BUCKETS: it counts the edges between each two partitions.
type buckets struct {
	x    *exec.Execution
	scan exec.Scan
}

func planBuckets(x *exec.Execution) (*exec.Plan, error) {
	n := len(x.Graph.Meta().Partitions)
	if n > bucketPartitionsMost {
		return nil, fmt.Errorf("the store has %d partitions, and this counts the pairs of up to %d",
			n, bucketPartitionsMost)
	}
	b := &buckets{x, x.Scan([]layout.Direction{layout.In}, -1)}
	return &exec.Plan{Run: b.run, Root: x.Operator("buckets", "edges by pair of partitions",
		float64(n*n), 0, b.scan.Operator)}, nil
}

// run counts the edges of each bucket (i,j) in one scan of the in-lists.
func (b *buckets) run(ctx context.Context) error {
	m := b.x.Graph.Meta()
	n := len(m.Partitions)
	if err := b.x.Hold("counters and order of pairs of partitions", 16*int64(n*n)); err != nil {
		return err
	}
	edges, err := b.count(ctx, m.Partitions)
	if err != nil {
		return err
	}
	b.x.Header("bucket", "edges", "bytes", "share", "skew")
	perEdge := uint64(b.x.Estimates().EntryBytes())
	for _, i := range topped(b.x, len(edges), func(i int) uint64 { return edges[i] }) {
		b.x.Row(fmt.Sprintf("(%d,%d)", i/n, i%n), words.Count(edges[i]),
			words.Size(edges[i]*perEdge), share(edges[i], m.Edges),
			skew(edges[i], m.Edges, len(edges)))
	}
	return nil
}

// count counts the edges of each pair of partitions. A list is sorted and partitions are ranges, so
// the edges of a bucket are adjacent in each list.
func (b *buckets) count(ctx context.Context, parts []kv.Partition) ([]uint64, error) {
	n := len(parts)
	edges := make([]uint64, n*n)
	return edges, b.scan.Each(ctx, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for k := range len(l.Off) - 1 {
				j := partitionOf(parts, first+layout.NodeID(k))
				list := l.Nbrs[l.Off[k]:l.Off[k+1]]
				for len(list) > 0 {
					i := partitionOf(parts, list[0])
					end := uint64(parts[i].First) + parts[i].Nodes
					run := sort.Search(len(list),
						func(q int) bool { return uint64(list[q]) >= end })
					edges[i*n+j] += uint64(run)
					list = list[run:]
				}
			}
			return nil
		})
}

// partitionOf returns the partition of a node; every node is in one.
func partitionOf(parts []kv.Partition, v layout.NodeID) int {
	return sort.Search(len(parts), func(i int) bool { return parts[i].First > v }) - 1
}
