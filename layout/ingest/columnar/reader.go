package columnar

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gdb/internal/bug"
	"gdb/layout/ingest/input"
)

// batchRows is the largest number of rows in a batch, batchValues of values and batchBytes of bytes
// of text, but for one row.
const batchRows, batchValues, batchBytes = 8192, 1 << 18, 4 << 20

// Reader reads columns of one file. It is used from one goroutine, and must be closed.
type Reader struct {
	input.Ahead
	file    *File
	spec    input.Spec
	dims    []int // of the spec's Vector: values of a field
	dim     int   // the sum of dims
	rows    int   // largest number in a batch
	head    bool  // the first rows are looked at
	cursors []*cursor
	where   map[int]*cursor // by field

	// Of the goroutine that reads.
	group int   // the next row group
	left  int64 // rows of the one that is open, not taken yet
	row   int64 // number of the next row, from 0
	at    int   // the next one among the rows that were taken
	taken int
}

// cursor is the reading of one column.
type cursor struct {
	*column
	group groupColumn // of the row group that is open; nil before the first
	rows  int         // largest number in a batch

	cells       // of the batch
	ends  []int // of lists: where each row's values end
}

// groupColumn reads a column of a row group.
type groupColumn interface {
	// fit is how many of the next n rows have no more text than limit, at least one.
	fit(c *cursor, n, limit int) (int, error)
	// take reads the next n rows into the cursor.
	take(c *cursor, n int) error
	close() error
}

// reset makes room for the values of a batch.
func (c *cursor) reset() {
	c.truncate(0)
	c.ends, c.arena = c.ends[:0], c.arena[:0]
}

// setGroup goes on to another row group.
func (c *cursor) setGroup(g groupColumn) error {
	err := c.close()
	c.group = g
	return err
}

func (c *cursor) close() error {
	if c.group == nil {
		return nil
	}
	err := c.group.close()
	c.group = nil
	if err != nil {
		return fmt.Errorf("columnar: column %q: %w", c.name, err)
	}
	return nil
}

// Read starts to read the columns that spec names. dims are the numbers of values in the fields of
// its Vector.
func Read(f *File, spec input.Spec, dims []int) (*Reader, error) {
	r, err := f.read(spec, dims, batchRows)
	if err != nil {
		return nil, err
	}
	for _, c := range spec.Columns {
		if err := r.where[c.Field].check(f.name, c.Kind); err != nil {
			return nil, err
		}
	}
	for _, field := range spec.Vector {
		if err := r.where[field].check(f.name, input.Text); err != nil {
			return nil, err
		}
	}
	guarded := func(b *input.Batch) error {
		return f.guard(func() error { return r.fill(b) })
	}
	r.Start(guarded, &input.Batch{}, &input.Batch{})
	return r, nil
}

func (t *File) read(spec input.Spec, dims []int, rows int) (*Reader, error) {
	if spec.Width != len(t.columns) || spec.Names != nil && !slices.Equal(spec.Names, t.Names()) {
		return nil, input.Wrong(t.name, "the files of a directory have the same columns; tables "+
			"of a database come in by --schema, which --schema-out writes",
			"its columns are not those of the files before it")
	}
	r := &Reader{file: t, spec: spec, dims: dims, where: map[int]*cursor{}}
	width := 0
	use := func(field, values int) {
		width += values
		if r.where[field] == nil {
			r.where[field] = &cursor{column: &t.columns[field]}
			r.cursors = append(r.cursors, r.where[field])
		}
	}
	for _, c := range spec.Columns {
		use(c.Field, 1)
	}
	for i, field := range spec.Vector {
		use(field, dims[i])
		r.dim += dims[i]
	}
	r.rows = min(rows, max(1, batchValues/max(1, width)))
	for _, c := range r.cursors {
		c.rows = r.rows
	}
	return r, nil
}

// Close ends the reading. It does not close the file.
func (r *Reader) Close() error {
	r.Stop()
	return r.closePages()
}

func (r *Reader) closePages() error {
	var errs []error
	for _, c := range r.cursors {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// fill reads and converts one batch. At the end of the file it returns io.EOF.
func (r *Reader) fill(b *input.Batch) error {
	for r.at == r.taken && r.left == 0 {
		rows, err := r.file.format.openGroup(r.group, r.cursors)
		if err != nil {
			return err
		}
		r.left = rows
		r.group++
	}
	if r.at == r.taken {
		n, err := r.fit(int(min(int64(r.rows), r.left)))
		if err != nil {
			return err
		}
		err = r.each(r.cursors, func(c *cursor) error { c.reset(); return c.group.take(c, n) })
		if err != nil {
			return err
		}
		r.left -= int64(n)
		r.at, r.taken = 0, n
	}
	r.convert(b)
	return nil
}

// fit returns how many of the next n rows are taken at a time, so that their texts are not too
// large.
func (r *Reader) fit(n int) (int, error) {
	var withText []*cursor
	for _, c := range r.cursors {
		if c.form == texts {
			withText = append(withText, c)
		}
	}
	if len(withText) == 0 {
		return n, nil
	}
	const least = 4 << 10 // bytes of a column, however many there are
	limit := max(least, batchBytes/len(withText))
	var fits atomic.Int64
	fits.Store(int64(n))
	err := r.each(withText, func(c *cursor) error {
		rows, err := c.group.fit(c, n, limit)
		for {
			now := fits.Load()
			if int64(rows) >= now || fits.CompareAndSwap(now, int64(rows)) {
				return err
			}
		}
	})
	return int(fits.Load()), err
}

// each calls fn for cursors, several at a time.
func (r *Reader) each(cursors []*cursor, fn func(c *cursor) error) error {
	workers := min(len(cursors), runtime.GOMAXPROCS(0))
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			defer bug.Catch()
			for i := w; i < len(cursors) && errs[w] == nil; i += workers {
				errs[w] = r.file.guard(func() error { return fn(cursors[i]) })
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
