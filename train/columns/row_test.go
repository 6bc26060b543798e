package columns

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
)

// cellOf returns a value of a table as JSON has it.
func cellOf(c *tableColumn, i int) any {
	v := &c.Values
	switch c.Type {
	case columnfile.String:
		return string(v.Strings.At(i))
	case columnfile.Bool:
		return v.Ints[i] == 1
	case columnfile.Date:
		return time.Unix(v.Ints[i]*secondsOfDay, 0).UTC().Format(time.DateOnly)
	case columnfile.Timestamp:
		return time.UnixMicro(v.Ints[i]).UTC().Format(time.RFC3339Nano)
	}
	return json.Number(fmt.Sprint(v.Ints[i]))
}

// TestRow: the rows of values by name are to the bit those of the table that has them, at the same
// time in several goroutines too.
func TestRow(t *testing.T) {
	s := mustShop(t)
	s.Meta().NodeTypes[0].Features = nil // no vectors
	e, dev := mustFit(t, s), layouttest.Device(t)
	encoded, err := e.Open(t.Context(), s, dev, mem.NewBudget(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := rowfile.Open(t.Context(), encoded, dev, encoded.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	_, tables := shop()
	for typ, table := range tables {
		r, err := e.NewRow(s.Meta(), typ)
		if err != nil {
			t.Fatal(err)
		}
		first, wide := s.Meta().NodeTypes[typ].First, make([]float32, rows.Width())
		var all sync.WaitGroup
		for i := range int(s.Meta().NodeTypes[typ].Nodes) {
			cells := map[string]any{}
			for k := range table {
				if !table[k].Values.Null(i) {
					cells[table[k].Name] = cellOf(&table[k], i)
				}
			}
			if err := rows.Scan(t.Context(), layout.NodeID(first)+layout.NodeID(i), 1,
				wide); err != nil {
				t.Fatal(err)
			}
			want := slices.Clone(wide[:e.Types[typ].Dim()])
			all.Go(func() {
				if got, err := r.Encode(cells); err != nil || !slices.Equal(got, want) {
					t.Errorf("%v is %v, %v, want %v", cells, got, err, want)
				}
			})
		}
		all.Wait()
	}
}

// TestRowRefused: rows with vectors, and runs whose columns are gone, are refused, and an error
// shows no more of a value than its beginning.
func TestRowRefused(t *testing.T) {
	s := mustShop(t)
	e := mustFit(t, s)
	if _, err := e.NewRow(s.Meta(), 0); err == nil || !strings.Contains(err.Error(), "of face") {
		t.Errorf("a type with vectors: %v", err)
	}
	r, err := e.NewRow(s.Meta(), 1)
	if err != nil {
		t.Fatal(err)
	}
	none, _ := r.Encode(nil)
	if empty, err := r.Encode(map[string]any{"brand": ""}); err != nil ||
		!slices.Equal(none, empty) || e.Types[1].Columns[0].Kind != Hashed {
		t.Errorf("empty text is %v, %v, want %v as of no value", empty, err, none)
	}
	_, err = r.Encode(map[string]any{"rank": strings.Repeat("x", 1000)})
	if want := `column "rank": "` + strings.Repeat("x", 40) + `" is not an integer`; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	s.Meta().NodeTypes[1].Columns = s.Meta().NodeTypes[1].Columns[1:]
	if _, err := e.NewRow(s.Meta(), 1); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Errorf("a column is gone: %v", err)
	}
}
