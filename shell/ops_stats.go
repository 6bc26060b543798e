package shell

import (
	"context"
	"fmt"

	"gdb/kv"
)

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
