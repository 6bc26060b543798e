package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/words"
)

func runStatsGraph(_ context.Context, x *exec.Execution) error {
	m := x.Graph.Meta()
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
	x.Row("in-degree max", words.Count(m.Stats.InMax))
	if len(m.Stats.OutHist) > 0 {
		x.Row("out-degree max", words.Count(m.Stats.OutMax))
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
	return nil
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

// runStatsPartitions shows the counts of ingest for each partition; with TOP, only the partitions
// with the most edges.
func runStatsPartitions(_ context.Context, x *exec.Execution) error {
	x.WarnApart()
	x.Header("partition", "first node", "nodes", "in-edges", "share", "skew")
	m := x.Graph.Meta()
	edges := func(i int) uint64 { return m.Partitions[i].Edges }
	for _, i := range topped(x, len(m.Partitions), edges) {
		p := m.Partitions[i]
		x.Row(i, fmt.Sprintf("#%d", p.First), words.Count(p.Nodes), words.Count(p.Edges),
			share(p.Edges, m.Edges), skew(p.Edges, m.Edges, len(m.Partitions)))
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
