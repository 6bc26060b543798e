package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gdb/layout/listfile"
	"gdb/shell/graph"
	"gdb/shell/result"
	"gdb/shell/words"

	"gdb/kv"
	"gdb/layout"
)

func runStatsGraph(_ context.Context, x *execution) error {
	m := x.engine.Meta()
	x.header("name", "value")
	for _, r := range graphRows(m) {
		if err := x.row(r[0], r[1]); err != nil {
			return err
		}
	}
	return nil
}

func graphRows(m *kv.Meta) [][2]any {
	rows := [][2]any{{"nodes", result.Count(m.Nodes)}, {"edges", result.Count(m.Edges)},
		{"undirected", m.Undirected}, {"edge types", result.Count(len(m.EdgeTypes))},
		{"partitions", result.Count(len(m.Partitions))}, {"in-degree max",
			result.Count(m.Stats.InMax)}}
	if len(m.Stats.OutHist) > 0 {
		rows = append(rows, [2]any{"out-degree max", result.Count(m.Stats.OutMax)})
	}
	rows = append(rows, [2]any{"self loops", result.Count(m.Stats.SelfLoops)},
		[2]any{"edges read", result.Count(m.Stats.EdgesRead)},
		[2]any{"dropped self loops", result.Count(m.Stats.DroppedSelfLoops)},
		[2]any{"dropped duplicates", result.Count(m.Stats.DroppedDuplicates)})
	total := int64(0)
	for _, f := range m.Files {
		total += f.Size
	}
	for _, f := range m.Features {
		rows = append(rows, [2]any{"features " + f.Name, fmt.Sprintf("%d x %s", f.Dim, f.DType)})
	}
	return append(rows, [2]any{"files", result.Count(len(m.Files))},
		[2]any{"bytes", result.Size(total)})
}

// share is part of whole, or nothing of nothing.
func share(part, whole uint64) any {
	if whole == 0 {
		return nil
	}
	return result.Ratio(float64(part) / float64(whole))
}

// skew is how many times the mean a part is.
func skew(part, whole uint64, parts int) any {
	if whole == 0 {
		return nil
	}
	return float64(part) * float64(parts) / float64(whole)
}

// runStatsPartitions shows what ingest counted; with TOP, those with the most edges.
func runStatsPartitions(_ context.Context, x *execution) error {
	x.header("partition", "first node", "nodes", "in-edges", "share", "skew")
	m := x.engine.Meta()
	order := make([]int, len(m.Partitions))
	for i := range order {
		order[i] = i
	}
	if x.Has("TOP") {
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(m.Partitions[b].Edges, m.Partitions[a].Edges)
		})
		order = order[:min(int64(len(order)), x.Args["TOP"].N)]
	}
	for _, i := range order {
		p := m.Partitions[i]
		err := x.row(i, fmt.Sprintf("#%d", p.First), result.Count(p.Nodes), result.Count(p.Edges),
			share(p.Edges, m.Edges), skew(p.Edges, m.Edges, len(m.Partitions)))
		if err != nil {
			return err
		}
	}
	return nil
}

// bucketPartitionsMost bounds the counters of STATS BUCKETS: 8 bytes for each pair of partitions.
const bucketPartitionsMost = 2048

func planBuckets(x *execution) (*operator, error) {
	n := len(x.engine.Meta().Partitions)
	if n > bucketPartitionsMost {
		return nil, fmt.Errorf("the store has %d partitions, and this counts the pairs of up to %d",
			n, bucketPartitionsMost)
	}
	return newOperator("buckets", "edges by pair of partitions", float64(n*n), 0,
		x.opScan([]layout.Direction{layout.In}, -1)), nil
}

// runStatsBuckets counts the edges of each bucket (i,j) in one scan of the in-lists. A list is
// sorted and partitions are ranges, so a bucket is a run of each list.
func runStatsBuckets(ctx context.Context, x *execution) error {
	m := x.engine.Meta()
	n := len(m.Partitions)
	if err := x.hold("counters and order of pairs of partitions", 16*int64(n*n)); err != nil {
		return err
	}
	edges := make([]uint64, n*n)
	inner, leave := x.enter(ctx, "scan")
	err := listfile.Scan(inner, x.engine.Store, x.engine.Dev, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for k := range len(l.Off) - 1 {
				j := partitionOf(m.Partitions, first+layout.NodeID(k))
				list := l.Nbrs[l.Off[k]:l.Off[k+1]]
				for len(list) > 0 {
					i := partitionOf(m.Partitions, list[0])
					end := uint64(m.Partitions[i].First) + m.Partitions[i].Nodes
					run := sort.Search(len(list),
						func(q int) bool { return uint64(list[q]) >= end })
					edges[i*n+j] += uint64(run)
					list = list[run:]
				}
			}
			x.emit("scan", len(l.Off)-1, 4*len(l.Nbrs))
			return ctx.Err()
		})
	leave()
	if err != nil {
		return err
	}
	x.header("bucket", "edges", "bytes", "share", "skew")
	order := make([]int, len(edges))
	for i := range order {
		order[i] = i
	}
	if x.Has("TOP") {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(edges[b], edges[a]) })
		order = order[:min(int64(len(order)), x.Args["TOP"].N)]
	}
	perEdge := uint64(estimator{m}.entryBytes())
	for _, b := range order {
		err := x.row(fmt.Sprintf("(%d,%d)", b/n, b%n), result.Count(edges[b]),
			result.Size(edges[b]*perEdge),
			share(edges[b], m.Edges), skew(edges[b], m.Edges, len(edges)))
		if err != nil {
			return err
		}
	}
	return nil
}

// partitionOf is the partition of a node, which is in one.
func partitionOf(parts []kv.Partition, v layout.NodeID) int {
	return sort.Search(len(parts), func(i int) bool { return parts[i].First > v }) - 1
}

func runStatsIO(_ context.Context, x *execution) error {
	if by := x.Args["BY"].Text; by != "" {
		return x.ioBy(by)
	}
	x.header("backend", "reads", "bytes", "errors", "wait_s")
	var sum graph.IOCounts
	for _, r := range x.engine.Dev.By(func(graph.IOKey) string { return "" }) {
		sum.Add(r.IOCounts)
	}
	return x.row(string(x.engine.Dev.Info().Backend), result.Count(sum.Reads),
		result.Size(sum.Bytes),
		result.Count(sum.Errors), sum.Wait.Seconds())
}

func (x *execution) ioBy(by string) error {
	rows := x.engine.Dev.By(func(k graph.IOKey) string {
		switch by {
		case "file":
			return k.File
		case "phase":
			return k.Phase
		}
		return k.Op
	})
	x.header(by, "reads", "bytes", "errors", "wait_s")
	for _, r := range rows {
		err := x.row(r.Name, result.Count(r.Reads), result.Size(r.Bytes), result.Count(r.Errors),
			r.Wait.Seconds())
		if err != nil {
			return err
		}
	}
	return nil
}

// traceLast is how many reads TRACE IO shows without LAST.
const traceLast = 20

// runTraceIO begins or ends recording, or shows what was recorded.
func runTraceIO(_ context.Context, x *execution) error {
	on, off := x.Has("ON"), x.Has("OFF")
	if on || off {
		x.engine.Dev.Trace(on)
		x.header("tracing")
		return x.row(map[bool]string{true: "on", false: "off"}[on])
	}
	records, tracing := x.engine.Dev.Last(int(min(x.IntOr("LAST", traceLast), graph.IORecordsMost)))
	if len(records) == 0 && !tracing {
		return errors.New("nothing was recorded: TRACE IO ON records reads from then on")
	}
	x.header("at_ms", "op", "phase", "file", "offset", "bytes", "batch_ms", "failed")
	for _, r := range records {
		err := x.row(float64(r.At.Sub(records[0].At).Microseconds())/1000, r.Op, r.Phase, r.File,
			r.Offset, result.Size(r.Bytes), float64(r.Wait.Microseconds())/1000, r.Failed)
		if err != nil {
			return err
		}
	}
	return nil
}

// runResetStats makes the counters of STATS CACHE and STATS IO begin anew.
func runResetStats(_ context.Context, x *execution) error {
	x.engine.Dev.Reset()
	x.engine.ResetCaches()
	x.header("counters")
	return x.row("reset")
}

// settings are what SET can change.
var settings = []string{"seed"}

// runSet changes a setting of the session.
func runSet(_ context.Context, x *execution) error {
	name, value := x.Operand.Text, x.Args["TO"].Text
	if !slices.Contains(settings, name) {
		return fmt.Errorf("no setting %s%s; SET changes %s, and .settings shows all",
			words.Quoted(name),
			words.Near(name, settings), strings.Join(settings, ", "))
	}
	seed, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return fmt.Errorf("TO %s: a seed is a whole number from 0 on", words.Quoted(value))
	}
	x.engine.SetSeed(seed)
	x.header("setting", "value")
	return x.row(name, fmt.Sprint(seed))
}
