package link

import (
	"context"

	"gdb/train/link/entities"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

// vectorSource gives an epoch its edges and the rows of entities, and keeps what is learned of
// entities: inMemory, or onDisk by partition. Every edge is in one part of each epoch. It may be
// used by one goroutine.
type vectorSource interface {
	// check returns an error about damage unless all that the records of a checkpoint name exists.
	check(record, best []byte) error
	// open opens the vectors as the records have them. note tells the user what was made for that.
	open(ctx context.Context, record, best []byte) (note string, err error)

	// Parts returns how many parts an epoch has.
	Parts(epoch uint64) int
	// Load loads a part. The rows of the previous part may not be changed any more.
	Load(ctx context.Context, epoch uint64, part int) (*triples.Part, error)
	// rows returns the table of which a part has rows.
	rows() *Table
	// Touch says that rows of the part were changed.
	Touch()
	// CheckpointFirst reports whether a checkpoint must be made before a part is loaded.
	CheckpointFirst(epoch uint64, part int) bool

	// Prepare makes what has changed durable, and returns the records for a checkpoint, of the last
	// vectors and the best ones. Once the checkpoint is made Committed is called.
	Prepare(ctx context.Context) (record, best []byte, err error)
	Committed() error

	// scored returns the vectors that are ranked, and the edges that are known. In memory they are
	// values; on disk they are the current ones or, with best, those of the best evaluation.
	scored(ctx context.Context, values []float32, best bool) (rank.Vectors, entities.Known, error)
	// learned copies the vectors of all entities to a table, for an encoder.
	learned(ctx context.Context, to *Table) error
	// keepBest keeps the vectors as the best ones, unless these are kept in memory. It reports
	// whether a checkpoint must follow.
	keepBest(ctx context.Context) (unsaved bool, err error)
	// count writes what an epoch read and wrote.
	count(epoch uint64, rec *runs.LinkEpoch) error
}

// inMemory is the source with all rows in memory: an epoch is one part.
type inMemory struct {
	part  triples.Part
	table *Table
	known *triples.Index
}

func newInMemory(edges []triples.Triple, table *Table, known *triples.Index) *inMemory {
	return &inMemory{triples.Part{Edges: edges,
		Spans: []triples.Span{{Count: uint32(table.Rows)}}}, table, known}
}

func (m *inMemory) check(_, _ []byte) error                              { return nil }
func (m *inMemory) open(context.Context, []byte, []byte) (string, error) { return "", nil }
func (m *inMemory) Parts(uint64) int                                     { return 1 }
func (m *inMemory) Load(context.Context, uint64, int) (_ *triples.Part, err error) {
	return &m.part, nil
}
func (m *inMemory) rows() *Table                                     { return m.table }
func (m *inMemory) Touch()                                           {}
func (m *inMemory) CheckpointFirst(uint64, int) bool                 { return false }
func (m *inMemory) Prepare(context.Context) (_, _ []byte, err error) { return nil, nil, nil }
func (m *inMemory) Committed() error                                 { return nil }
func (m *inMemory) learned(context.Context, *Table) error            { return nil }
func (m *inMemory) keepBest(context.Context) (bool, error)           { return false, nil }
func (m *inMemory) count(uint64, *runs.LinkEpoch) error              { return nil }

func (m *inMemory) scored(_ context.Context, values []float32, _ bool) (rank.Vectors,
	entities.Known, error) {
	return entities.InMemory(values, m.table.Dim), entities.Indexed{Index: m.known}, nil
}
