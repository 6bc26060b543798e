package kv

import "time"

// IndexMeta describes an index of the nodes of a type by a column. It is of one snapshot, and holds
// for no other.
type IndexMeta struct {
	Label    string // the type of nodes
	Property string // the name of the column
	Type     string // of its values
	Snapshot uint64
	Created  time.Time
	Path     string // of its file, in the folder of what is made of that snapshot
	Bytes    int64
	Values   uint64 // nodes that are not null
}

// Name returns the name of the index, as users give it.
func (m *IndexMeta) Name() string { return m.Label + "." + m.Property }
