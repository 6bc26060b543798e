package cli

import (
	"fmt"

	"gdb/kv"

	"github.com/dustin/go-humanize"
)

// EdgeSplitLines are lines about the splits of the edges, each with the nodes and edge types that
// train has no edge of.
func EdgeSplitLines(m *kv.Meta) (lines []string) {
	for _, s := range m.EdgeSplits {
		line := fmt.Sprintf("%s: %s edges", s.Name, humanize.Comma(int64(s.Count)))
		if s.UnseenNodes > 0 {
			line += fmt.Sprintf(", with %d nodes not in train", s.UnseenNodes)
		}
		if s.UnseenTypes > 0 {
			line += fmt.Sprintf(", with %d edge types not in train", s.UnseenTypes)
		}
		if s.Reversed > 0 {
			line += fmt.Sprintf(", %s with their reverse in train",
				humanize.Comma(int64(s.Reversed)))
		}
		lines = append(lines, line)
	}
	return lines
}

// DirectionNotes say what a user may not know of a graph whose edges go one way only. Of a part of
// a store there is nothing to say: its outermost nodes have no lists.
func DirectionNotes(m *kv.Meta) (notes []string) {
	s := m.Stats
	share, known := m.ReversedShare()
	if !known {
		return nil
	}
	if s.SharedEnds == 0 && len(m.NodeTypes) == 0 {
		notes = append(notes, "no node is both a source and a destination: if these are two kinds "+
			"of nodes, --src-type user --dst-type item numbers them apart")
	}
	switch {
	case share == 1:
		notes = append(notes, "each edge has its reverse in the source: the graph is undirected, "+
			"and stored as given; --undirected says so and drops duplicates")
	case share < kv.ReversedUsual:
		notes = append(notes, fmt.Sprintf("%.0f %% of edges have their reverse; models usually "+
			"want both: --undirected", 100*share))
	}
	return notes
}
