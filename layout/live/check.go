package live

import (
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
)

// CheckStore finds what stores cannot be appended to, so far: in dir there is one that m describes.
func CheckStore(dir string, m *kv.Meta) error {
	flag := func(name string) string {
		for _, arg := range m.Source.Args {
			if value, ok := strings.CutPrefix(arg, "--"+name); ok {
				return strings.TrimPrefix(value, "=")
			}
		}
		return ""
	}
	what := ""
	switch {
	case m.Typed() && (has(m, "dedup") || flag("merge") != ""):
		what = "its nodes have types, and parallel edges were dropped"
	case m.Labels != nil && m.Labels.Kind == "multi" && len(m.EdgeSplits) > 0:
		what = "its nodes have several labels, and its edges are in splits"
	case m.Typed():
		return nil
	case len(m.NodeTypes) > 0:
		what = "its ids have types"
	case len(m.EdgeTables) > 0 && len(m.EdgeSplits) > 0 && m.Undirected:
		what = "its edges have columns, are in splits, and have no direction"
	case len(m.Partitions) > 1:
		what = "its nodes are in order of partitions"
	case len(m.Features) > 1 || len(m.Features) == 1 && m.Features[0].DType == "sparse":
		what = "it has sparse features, or several"
	case source.IsMade(flag("features")):
		what = "its features were made of the graph"
	case slices.Contains([]string{"zscore", "auto"}, flag("normalize")):
		what = "its features were scaled by what all of them are"
	case flag("merge") != "" || m.Weighted && drops(m) || m.Timestamped && drops(m):
		what = "weights or times of parallel edges were merged"
	case m.Labels != nil && m.Labels.Kind == "multi":
		what = "its nodes have several labels"
	case m.SplitColumn >= 0:
		what = "it has several columns of splits"
	default:
		return nil
	}
	return input.Usage("%s: %s: such stores are not appended to so far; ingest all sources anew",
		dir, what)
}

// has reports whether a store was ingested with a flag.
func has(m *kv.Meta, flag string) bool { return slices.Contains(m.Source.Args, "--"+flag) }

// drops reports whether a store has no parallel edges.
func drops(m *kv.Meta) bool {
	return !has(m, "keep-duplicates") && (m.Undirected || has(m, "dedup"))
}
