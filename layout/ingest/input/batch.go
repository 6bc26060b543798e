package input

import (
	"context"
	"fmt"
	"io"
	"sync"

	"gdb/internal/bug"
)

// Values are the fields of one column, in the slice that its Kind is kept in.
type Values struct {
	IDs      []uint64  // ID, Reference
	Texts    [][]byte  // Key, Text
	Integers []int64   // Time, Moment, Int64, Float64, Truth
	Nulls    []bool    // of Int64, Float64 and Truth: whether the field is empty
	Floats   []float32 // Float, Optional
	// Rounded are the numbers of a column of Floats that float32 does not hold, by row.
	Rounded []Rounded
}

// Truncate keeps the values of the first n rows.
func (v *Values) Truncate(n int) {
	v.IDs, v.Texts = v.IDs[:min(n, len(v.IDs))], v.Texts[:min(n, len(v.Texts))]
	v.Nulls = v.Nulls[:min(n, len(v.Nulls))]
	v.Integers, v.Floats = v.Integers[:min(n, len(v.Integers))], v.Floats[:min(n, len(v.Floats))]
	for len(v.Rounded) > 0 && v.Rounded[len(v.Rounded)-1].Row >= n {
		v.Rounded = v.Rounded[:len(v.Rounded)-1]
	}
}

// Bad is a row that could not be read. It is in no column.
type Bad struct {
	Line     int64
	What, Do string
	// NotInteger says that the only thing wrong is that an ID is no integer.
	NotInteger bool
}

// Where locates rows in their file.
type Where struct {
	File  string
	First int64   // line (from 1) or row (from 0) of the first row
	Lines []int64 // of each row, where rows are not consecutive; else nil
	Unit  string  // "line" or "row"
}

// Position names row i, for messages: "edges.csv line 17".
func (w *Where) Position(i int) string { return fmt.Sprintf("%s %s %d", w.File, w.Unit, w.Line(i)) }

// Line returns the line or the number of row i.
func (w *Where) Line(i int) int64 {
	if w.Lines != nil {
		return w.Lines[i]
	}
	return w.First + int64(i)
}

// Batch is a run of rows.
type Batch struct {
	Where
	Rows    int
	Columns []Values // parallel to Spec.Columns
	Vector  []float32
	Bad     []Bad  // rows among the others that are left out
	Buffer  []byte // holds the texts of Columns

	lines []int64 // kept for Lines
	err   error
}

// Reset empties a batch for rows of a number of columns.
func (b *Batch) Reset(columns int) {
	if b.Columns == nil {
		b.Columns = make([]Values, columns)
	}
	b.Rows, b.First, b.Lines, b.Bad, b.err = 0, 0, nil, b.Bad[:0], nil
	b.Truncate(0)
}

// Truncate takes back what was appended of a row that is bad. dim is the number of values in the
// Vector of a row.
func (b *Batch) Truncate(dim int) {
	for i := range b.Columns {
		b.Columns[i].Truncate(b.Rows)
	}
	b.Vector = b.Vector[:min(b.Rows*dim, len(b.Vector))]
}

// Place counts a row and notes its line.
func (b *Batch) Place(line int64) {
	if b.Rows == 0 {
		b.First = line
	}
	if b.Lines == nil && line != b.First+int64(b.Rows) {
		b.Lines = b.lines[:0]
		for i := range b.Rows {
			b.Lines = append(b.Lines, b.First+int64(i))
		}
	}
	if b.Lines != nil {
		b.Lines = append(b.Lines, line)
		b.lines = b.Lines
	}
	b.Rows++
}

// Ahead fills batches in a goroutine, which is one batch ahead of the caller of Next.
type Ahead struct {
	free, full chan *Batch
	stop       chan struct{}
	stopOnce   sync.Once
	working    sync.WaitGroup
	last       *Batch // what Next returned
	fill       func(*Batch) error
}

// Start fills the batches in turn, until fill fails or returns io.EOF, or Stop.
func (a *Ahead) Start(fill func(*Batch) error, batches ...*Batch) {
	a.free, a.full = make(chan *Batch, len(batches)), make(chan *Batch, 1)
	a.stop, a.fill = make(chan struct{}), fill
	for _, b := range batches {
		a.free <- b
	}
	a.working.Go(a.work)
}

func (a *Ahead) work() {
	defer bug.Catch()
	defer close(a.full)
	for {
		var b *Batch
		select {
		case b = <-a.free:
		case <-a.stop:
			return
		}
		b.err = a.fill(b)
		if b.err == io.EOF {
			return
		}
		failed := b.err != nil
		select {
		case a.full <- b:
		case <-a.stop:
			return
		}
		if failed {
			return
		}
	}
}

// Next returns the next batch, valid until the following call, or io.EOF.
func (a *Ahead) Next(ctx context.Context) (*Batch, error) {
	if a.last != nil {
		a.free <- a.last
		a.last = nil
	}
	select {
	case b, ok := <-a.full:
		if !ok {
			return nil, io.EOF
		}
		if b.err != nil {
			return nil, b.err
		}
		a.last = b
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Stop ends the filling and waits for its goroutine.
func (a *Ahead) Stop() {
	a.stopOnce.Do(func() { close(a.stop) })
	a.working.Wait()
}
