package layout

import (
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TopologySpec says what a topology file holds.
type TopologySpec struct {
	UUID       kv.UUID
	Direction  Direction
	Nodes      uint64
	BlockBytes int
	Types      bool
	Weights    bool
	Times      bool
}

// TopologyWriter packs lists into blocks. Lists come in node order, sorted by neighbor id.
// Memory: a write buffer and 4 bytes per block for the index.
type TopologyWriter struct{}

// NewTopologyWriter starts the file path (PREFIX.csc) and its index (PREFIX.idx).
func NewTopologyWriter(fs vfs.FS, prefix string, spec TopologySpec) (*TopologyWriter, error) {
	panic("BUG: layout: NewTopologyWriter is missing")
}

// Edge is one entry of a list; fields that the spec leaves out are ignored.
type Edge struct {
	Nbr    NodeID
	Type   uint16
	Weight float32
	Time   int64
}

// AddEdge appends an edge to the list of node. Nodes come in ascending order; nodes that are
// skipped have empty lists.
func (w *TopologyWriter) AddEdge(node NodeID, e Edge) error {
	panic("BUG: layout: AddEdge is missing")
}

// Finish writes the last block and the index, syncs both files, and returns their records.
func (w *TopologyWriter) Finish() ([]kv.FileMeta, error) { panic("BUG: layout: Finish is missing") }

// Abort closes the files without finishing them.
func (w *TopologyWriter) Abort() error { panic("BUG: layout: Abort is missing") }
