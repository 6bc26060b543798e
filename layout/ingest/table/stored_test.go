package table

import (
	"testing"

	"gdb/kv"
)

// TestColumnTypeOfNumbers: numbers of which one is a code, with zeros before it, are text.
func TestColumnTypeOfNumbers(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   string
	}{{[]string{"7", "0", "-12"}, "int64"}, {[]string{"0.5", "+7", "1e3"}, "float64"},
		{[]string{"01234", "99"}, "string"}, {[]string{"", "7"}, "int64"},
		{[]string{"1", "true"}, "string"}} {
		table := &Table{}
		for _, v := range c.values {
			table.Sample = append(table.Sample, []string{v})
		}
		if got := ColumnType(table, 0, nil); got != c.want {
			t.Errorf("%q: %s, want %s", c.values, got, c.want)
		}
	}
}

// TestRowBytesOf: the bounds of columns give the size of their largest row, but for strings between
// them.
func TestRowBytesOf(t *testing.T) {
	column := func(typ, least, greatest string) kv.TableColumn {
		return kv.TableColumn{Type: typ, Rows: 2, Least: least, Greatest: greatest}
	}
	none := column("int64", "", "")
	none.Nulls = 2
	for _, c := range []struct {
		of   kv.TableColumn
		want int
	}{{column("int64", "-3", "63"), 2}, {column("int64", "-65", "1"), 3},
		{column("float64", "0", "1"), 9}, {column("bool", "0", "1"), 2},
		{column("date", "1969-12-31", "2020-01-01"), 4},
		{column("timestamp", "1970-01-01T00:00:00.000001Z", "2020-01-01T00:00:00Z"), 9},
		{column("string", "a", "word"), 6}, {none, 1}} {
		if got := RowBytesOf([]kv.TableColumn{c.of}); got != c.want {
			t.Errorf("%s from %q to %q: %d bytes, want %d", c.of.Type, c.of.Least, c.of.Greatest,
				got, c.want)
		}
	}
	nine := make([]kv.TableColumn, 9)
	for i := range nine {
		nine[i] = none
	}
	if got := RowBytesOf(nine); got != 2 {
		t.Errorf("nine columns of nulls take %d bytes, want 2", got)
	}
}
