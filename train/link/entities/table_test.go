package entities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/link/rank"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const tableRows, tableDim = 1000, 3

// valueOf is what a column of a row has in all tables of the tests.
func valueOf(entity, column int) float32 { return float32(entity) + float32(column)/8 }

func tableValues() []float32 {
	values := make([]float32, tableRows*tableDim)
	for i := range values {
		values[i] = valueOf(i/tableDim, i%tableDim)
	}
	return values
}

// mustState returns the state of a checkpoint that has the rows as the array "rows", and another.
func mustState(t *testing.T) *runs.StateFile {
	t.Helper()
	fs, meta := vfs.NewMem(), &kv.Meta{UUID: kv.UUID{5}}
	dir := runs.Open(layout.NewStore(fs, "s", meta), "run")
	if err := fs.MkdirAll(dir.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	err := dir.WriteState(struct{}{}, []runs.Array{{Name: "other", Values: make([]float32, 77)},
		{Name: "rows", Values: tableValues()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	name, err := dir.Current()
	if err != nil {
		t.Fatal(err)
	}
	s, err := dir.OpenState(name, &struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// mustFiles returns files by partition in which rows have their values.
func mustFiles(t *testing.T, parts int) *Files {
	t.Helper()
	s := mustSpec(t, tableRows, parts, tableDim, 1)
	d, err := CreateFiles(vfs.NewMem(), "rows", layouttest.Device(t), s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tables are tables of the same rows, from each source, with what they count in a budget.
func tables(t *testing.T, budget *mem.Budget) map[string]*Table {
	t.Helper()
	shape, all := Shape{Count: tableRows, Dim: tableDim, BlockRows: 300}, map[string]*Table{}
	must := func(name string, table *Table, err error) {
		if err != nil {
			t.Fatal(name, err)
		}
		all[name] = table
		t.Cleanup(func() {
			if err := table.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	must("in memory", InMemory(tableValues(), tableDim), nil)
	table, err := Loaded(mustState(t), "rows", shape, budget)
	must("loaded", table, err)
	for frames := 1; frames <= 3; frames++ {
		table, err = Stored(t.Context(), mustState(t), "rows", shape, Memory{frames, budget})
		must(fmt.Sprint("stored in ", frames), table, err)
		table, err = Paged(mustFiles(t, 4), Memory{frames, budget}, nil)
		must(fmt.Sprint("paged in ", frames), table, err)
	}
	files := mustFiles(t, 4)
	spec, frames := files.Spec(), [][]float32{}
	for range 2 {
		frames = append(frames, frame(t, &spec)[0])
	}
	must("paged in other memory", PagedIn(files, frames), nil)
	return all
}

// TestTables: tables have each row once, in its place in one block, wherever it is kept.
func TestTables(t *testing.T) {
	for name, x := range tables(t, nil) {
		if x.Count() != tableRows || x.Dim() != tableDim {
			t.Errorf("%s: a table of %dx%d", name, x.Count(), x.Dim())
		}
		want := map[string]int{"in memory": 1, "loaded": 1}[name]
		if want == 0 {
			want = 4
		}
		for range 2 { // the second time some blocks are in frames
			seen, blocks := make([]bool, tableRows), 0
			err := x.Each(t.Context(), func(b *rank.Block) error {
				if b.Number != blocks || len(b.Rows) != b.Count*tableDim {
					t.Fatalf("%s: block %d of %d rows has number %d", name, blocks, b.Count,
						b.Number)
				}
				blocks++
				for row := range b.Count {
					e := b.Entity(row)
					block, at := x.Place(e)
					if seen[e] || block != b.Number || at != uint64(row) ||
						b.Ascending && row > 0 && e != b.Entity(row-1)+1 {
						t.Fatalf("%s: entity %d is row %d of block %d, and %d of %d", name, e,
							row, b.Number, at, block)
					}
					seen[e] = true
					for k := range tableDim {
						if got := b.Rows[row*tableDim+k]; got != valueOf(int(e), k) {
							t.Fatalf("%s: entity %d has %g", name, e, got)
						}
					}
				}
				return nil
			})
			if err != nil || blocks != want || slices.Contains(seen, false) {
				t.Errorf("%s: %d blocks, want %d: %v", name, blocks, want, err)
			}
		}
		if all := x.All(); (all != nil) != (want == 1) || all != nil && !slices.Equal(all,
			tableValues()) {
			t.Errorf("%s: %d values in memory", name, len(all))
		}
	}
}

// TestGather: rows come in the order in which they are asked for, those that are asked for twice
// too, and blocks that were in memory before are read again where they were overwritten.
func TestGather(t *testing.T) {
	asked := [][]uint32{{999, 0, 299, 300, 299, 5, 600, 261, 4}, {7}, {}, {10, 266, 267, 523, 524}}
	for name, x := range tables(t, nil) {
		for _, entities := range asked {
			if err := x.Each(t.Context(), func(*rank.Block) error { return nil }); err != nil {
				t.Fatal(err)
			}
			to := make([]float32, len(entities)*tableDim+1)
			to[len(entities)*tableDim] = -1
			if err := x.Gather(t.Context(), to, entities); err != nil {
				t.Fatal(name, err)
			}
			for i, e := range entities {
				for k := range tableDim {
					if got := to[i*tableDim+k]; got != valueOf(int(e), k) {
						t.Errorf("%s: of %v row %d is %g, want %g", name, entities, i, got,
							valueOf(int(e), k))
					}
				}
			}
			if to[len(entities)*tableDim] != -1 {
				t.Errorf("%s: more than was asked for is written", name)
			}
		}
	}
}

// TestInOrder: all rows come in the order of entities, at most rowsOnce at a time, also where
// memory is for a window of few of them.
func TestInOrder(t *testing.T) {
	for _, limit := range []int64{0, 8 << 20} {
		budget := mem.NewBudget(limit)
		for name, x := range tables(t, budget) {
			used := budget.Used()
			if limit > 0 { // a window of some 300 rows
				spare := mem.ArenaBytes(300 * 4 * tableDim)
				if err := budget.Reserve("others", limit-used-2*spare); err != nil {
					t.Fatal(err)
				}
			}
			before, next, windows := budget.Used(), 0, 0
			err := x.InOrder(t.Context(), budget, func(first int, rows []float32) error {
				windows++
				if first != next || len(rows) > rowsOnce*tableDim {
					t.Fatalf("%s: %d rows from %d on, want from %d on", name, len(rows)/tableDim,
						first, next)
				}
				for i, v := range rows {
					if want := valueOf(first+i/tableDim, i%tableDim); v != want {
						t.Fatalf("%s: entity %d has %g, want %g", name, first+i/tableDim, v, want)
					}
				}
				next += len(rows) / tableDim
				return nil
			})
			if err != nil || next != tableRows || budget.Used() != before {
				t.Errorf("%s: %d rows, %d bytes are left: %v", name, next, budget.Used()-before,
					err)
			}
			if windows > 7 { // as many as the table has blocks, or windows
				t.Errorf("%s, limit %d: rows come in %d pieces", name, limit, windows)
			}
			if limit > 0 {
				budget.Release(limit - used - 2*mem.ArenaBytes(300*4*tableDim))
			}
		}
	}
	broken := errors.New("broken")
	for name, x := range tables(t, nil) {
		err := x.InOrder(t.Context(), mem.NewBudget(0),
			func(int, []float32) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHandOut passes rows on, some at a time.
func TestHandOut(t *testing.T) {
	var got []string
	rows := make([]float32, (2*rowsOnce+5)*2)
	if err := handOut(40, rows, 2, func(first int, rows []float32) error {
		got = append(got, fmt.Sprint(first, " ", len(rows)))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{fmt.Sprint(40, " ", 2*rowsOnce), fmt.Sprint(40+rowsOnce, " ", 2*rowsOnce),
		fmt.Sprint(40+2*rowsOnce, " ", 10)}
	if !slices.Equal(got, want) {
		t.Errorf("parts %q, want %q", got, want)
	}
}

// TestTableErrors: errors of who looks at blocks, of reading and of contexts reach the caller, and
// the table can be used again.
func TestTableErrors(t *testing.T) {
	broken := errors.New("broken")
	for name, x := range tables(t, nil) {
		for _, at := range []int{0, 1, 3} {
			blocks := 0
			err := x.Each(t.Context(), func(*rank.Block) error {
				if blocks++; blocks == at+1 {
					return broken
				}
				return nil
			})
			if x.All() == nil && (!errors.Is(err, broken) || blocks != at+1) {
				t.Errorf("%s: after %d blocks: %v", name, blocks, err)
			}
		}
		if x.All() != nil {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := x.Each(ctx, func(*rank.Block) error { return nil }); !errors.Is(err,
			context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if err := x.Gather(ctx, make([]float32, tableDim), []uint32{8}); !errors.Is(err,
			context.Canceled) {
			t.Errorf("%s, one row: %v", name, err)
		}
		to := make([]float32, tableDim)
		if err := x.Gather(t.Context(), to, []uint32{8}); err != nil || to[0] != 8 {
			t.Errorf("%s: %g, %v", name, to[0], err)
		}
	}
	if _, err := Stored(t.Context(), mustState(t), "none", Shape{tableRows, tableDim, 10},
		Memory{Frames: 1}); err == nil {
		t.Error("an array that is not there is a table")
	}
	budget := mem.NewBudget(1 << 20)
	if _, err := Loaded(mustState(t), "none", Shape{tableRows, tableDim, 0}, budget); err == nil ||
		budget.Used() != 0 {
		t.Errorf("an array that is not there: %d bytes are counted, %v", budget.Used(), err)
	}
}

// TestTableMemory: frames are counted until the table is closed: those of a file have the rows of
// a block, at most all rows.
func TestTableMemory(t *testing.T) {
	for _, c := range []struct{ blockRows, frames, rows int }{{300, 2, 300}, {5000, 1, tableRows},
		{0, 3, 1}} {
		budget := mem.NewBudget(1 << 30)
		x, err := Stored(t.Context(), mustState(t), "rows", Shape{tableRows, tableDim,
			c.blockRows}, Memory{c.frames, budget})
		if err != nil {
			t.Fatal(err)
		}
		want := mem.ArenaBytes(int64(4 * c.frames * c.rows * tableDim))
		if got := budget.Used(); got != want {
			t.Errorf("%+v: %d bytes, want %d", c, got, want)
		}
		if err := x.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%d bytes after Close: %v", budget.Used(), err)
		}
	}
}

// TestReadErrors: an error of reading a partition is what explain makes of it, or names the
// partition.
func TestReadErrors(t *testing.T) {
	mine := errors.New("mine")
	for _, explain := range []func(error) error{nil, func(error) error { return mine }} {
		d := mustFiles(t, 4)
		f := frame(t, &d.spec)
		if _, err := d.Read(t.Context(), 2, f); err != nil {
			t.Fatal(err)
		}
		if err := d.Write(2, f); err != nil {
			t.Fatal(err)
		}
		names, err := d.fs.List(d.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := d.fs.Remove(d.fs.PathJoin(d.path, name)); err != nil {
				t.Fatal(err)
			}
		}
		x, err := Paged(d, Memory{Frames: 1}, explain)
		if err != nil {
			t.Fatal(err)
		}
		err = x.Each(t.Context(), func(*rank.Block) error { return nil })
		switch {
		case explain != nil && !errors.Is(err, mine):
			t.Errorf("error %v, want what explains it", err)
		case explain == nil && (err == nil || !slices.Contains([]string{"read partition 2:"},
			err.Error()[:min(len(err.Error()), 17)])):
			t.Errorf("error %v, want one that names the partition", err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
