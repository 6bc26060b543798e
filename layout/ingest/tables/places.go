package tables

import (
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// Places notes, for each edge of the in-lists that has a row in a table, where it stands:
// records of
//
//	table (16) | number in the source (48)
//	reverse (1) | place among the entries of the relation (63)
//	node
type Places struct {
	tables  []placedTable // by relation
	ranged  bool
	sorter  *extsort.Words
	records []uint64 // on their way to the sorter
}

// placedTable is the table of a relation, and how many entries of its lists came so far.
type placedTable struct {
	of      uint64 // the table, in place for the record
	reverse uint64 // the bit of the record
	has     bool
	entries uint64
}

// reverseEntry is set in the place of an entry of a reverse relation.
const reverseEntry = 1 << 63

// Open begins, if there are tables of edges.
func (e *Places) Open(w *steps.Work, info *source.Info) (err error) {
	if len(info.EdgeTables) == 0 {
		return nil
	}
	e.ranged = info.Ranged
	e.tables = make([]placedTable, max(1, len(info.Relations)))
	for _, t := range info.EdgeTables {
		e.tables[t.Type] = placedTable{of: uint64(t.Type) << relationShift, has: true}
		if t.Reverse > 0 {
			e.tables[t.Reverse] = placedTable{of: uint64(t.Type) << relationShift, has: true,
				reverse: reverseEntry}
		}
	}
	e.records = make([]uint64, 0, batchRecords*placeWords)
	e.sorter, err = extsort.NewWords(w.Sorter("edge-places", placeWords, w.Memory.Strings))
	return err
}

const (
	placeWords   = 3   // of a record
	batchRecords = 512 // that are handed on together
)

// Add takes the next edge of the lists.
func (e *Places) Add(node uint64, relation uint16, number uint64) error {
	if e.sorter == nil {
		return nil
	}
	if !e.ranged {
		relation = 0
	}
	t := &e.tables[relation]
	if !t.has {
		return nil
	}
	e.records = append(e.records, t.of|number, t.reverse|t.entries, node)
	t.entries++
	if len(e.records)+placeWords <= cap(e.records) {
		return nil
	}
	err := e.sorter.Add(e.records)
	e.records = e.records[:0]
	return err
}

// Finish returns the sorted records.
func (e *Places) Finish() ([]extsort.Run, error) {
	if e.sorter == nil {
		return nil, nil
	}
	if err := e.sorter.Add(e.records); err != nil {
		return nil, err
	}
	return e.sorter.Finish()
}

// Close frees the memory; after Finish too.
func (e *Places) Close() error {
	if e.sorter == nil {
		return nil
	}
	return e.sorter.Abort()
}
