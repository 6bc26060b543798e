package kv

import "time"

// IndexMeta describes an index of the nodes of a type by a column, or one of vectors of all nodes.
// It is of one snapshot, and holds for no other.
type IndexMeta struct {
	Label    string // the type of nodes; "" for vectors
	Property string // the name of the column; of vectors "run NAME" or "features NAME"
	Type     string // of its values; "vectors"
	Snapshot uint64
	Created  time.Time
	Path     string // of its file, in the folder of what is made of that snapshot
	Bytes    int64
	Values   uint64 // nodes that are not null

	// Of an index of vectors: which they are, the way to compare, the number of lists, how many
	// of these are looked at, how many candidates are compared exactly for ten answers, and which
	// share of the ten closest was found then.
	Of     string  `json:",omitempty"`
	By     string  `json:",omitempty"`
	Lists  int     `json:",omitempty"`
	Probes int     `json:",omitempty"`
	Rerank int     `json:",omitempty"`
	Recall float64 `json:",omitempty"`
}

// Name returns the name of the index, as users give it.
func (m *IndexMeta) Name() string {
	if m.Label == "" {
		return m.Property
	}
	return m.Label + "." + m.Property
}
