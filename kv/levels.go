package kv

import (
	"fmt"
	"time"
)

// LevelMeta describes what a commit added to a store: a store in a folder of its own. Its catalog
// has the set LevelNodes: number i of its members is the node, in the whole store, that is node i
// of the level. Meta.Below of its nodes were there before; the others follow the nodes of the
// levels before, in order.
type LevelMeta struct {
	Snapshot uint64 // the number of the commit
	Created  time.Time
	Path     string // of the folder, relative to the store
	UUID     UUID
	Nodes    uint64 // that were added
	Edges    uint64
	Bytes    int64 // of its files
	Source   SourceMeta
	// Gone says that the edges of the level are no longer there, of those before it: each entry
	// that equals one in ends, type and time. They take Removed entries away.
	Gone    bool   `json:",omitempty"`
	Removed uint64 `json:",omitempty"`
	// Rows is the path of a file of rows, in a level that has nothing else: readers take them in
	// place of the rows that its nodes had before. RowNodes is the number of these nodes. Rows is
	// "" in other levels.
	Rows     string `json:",omitempty"`
	RowNodes uint64 `json:",omitempty"`
}

// LevelNodes is the name of the set of the nodes of a level.
const LevelNodes = "nodes"

// checkLevels checks that levels ascend, and do not have more than all together.
func (m *Meta) checkLevels() error {
	nodes, last := uint64(0), uint64(0)
	for _, l := range m.Levels {
		if err := checkPath(l.Path); err != nil {
			return err
		}
		if l.Snapshot < last || l.Snapshot > m.Snapshot || l.Nodes > m.Nodes-nodes ||
			l.Bytes < 0 || l.Gone && l.Nodes > 0 || !l.Gone && l.Removed > 0 ||
			l.Rows != "" && (l.Gone || l.Nodes+l.Edges > 0) {
			return fmt.Errorf("snapshot %d adds %d nodes and %d edges to a store of %d and %d, "+
				"after snapshot %d of %d", l.Snapshot, l.Nodes, l.Edges, m.Nodes, m.Edges, last,
				m.Snapshot)
		}
		nodes, last = nodes+l.Nodes, l.Snapshot
	}
	if edges := m.inBase(); edges < 0 {
		return fmt.Errorf("levels add %d edges more than the store has", -edges)
	}
	if (m.Base != "" || len(m.Levels) > 0) && m.Manifest == 0 || m.Below > m.Nodes {
		return fmt.Errorf("%d levels on base %q in a manifest of version %d, %d nodes of %d below",
			len(m.Levels), m.Base, m.Manifest, m.Below, m.Nodes)
	}
	if m.Base != "" {
		return checkPath(m.Base)
	}
	return nil
}

// BaseMeta describes the files in the store's own folder: the store without its levels.
func (m *Meta) BaseMeta() *Meta {
	base := *m
	base.Manifest, base.Snapshot, base.Levels, base.Deleted = 0, 0, nil, ""
	for _, l := range m.Levels {
		base.Nodes -= l.Nodes
	}
	base.Edges = uint64(m.inBase())
	return &base
}

// inBase returns the number of edges of the base.
func (m *Meta) inBase() int64 {
	n := int64(m.Edges)
	for _, l := range m.Levels {
		if l.Gone {
			n += int64(l.Removed)
		} else {
			n -= int64(l.Edges)
		}
	}
	return n
}

// Folders returns the folders of the base and of the levels, relative to the store: "" for files in
// the store's own folder.
func (m *Meta) Folders() []string {
	all := []string{m.Base}
	for _, l := range m.Levels {
		all = append(all, l.Path)
	}
	return all
}
