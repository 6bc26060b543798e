package export

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"gdb/internal/tables"
	"gdb/kv"
	"gdb/kv/ids"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// named is a dictionary of a few ids.
type named struct {
	ids.Dictionary
	ids []string
}

func (n named) External(_ context.Context, nodes []kv.NodeID, to []string) ([]string, error) {
	for _, v := range nodes {
		to = append(to, n.ids[v])
	}
	return to, nil
}

func mustRead(t *testing.T, fs vfs.FS, name string) string {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTableOfNumPy: ids are integers if all are, and else as wide as the longest.
func TestTableOfNumPy(t *testing.T) {
	for kind, c := range map[kv.IDKind]struct {
		ids    []string
		header string
		width  int
	}{
		kv.IDsString:  {[]string{"é1", "b", "abc"}, "('id', '<U3'), ('x', '<f4')", 16},
		kv.IDsInteger: {[]string{"7", "-12", "3"}, "('id', '<i8'), ('x', '<f4')", 12},
	} {
		fs := vfs.NewMem()
		m := &kv.Meta{Nodes: 3}
		m.IDs.Kind = kind
		table, err := CreateTable(t.Context(), TableSpec{FS: fs, Path: "p.npy", Meta: m,
			Names: named{ids: c.ids}, Columns: []tables.Column{{Name: "x", Kind: tables.Float32}}})
		if err != nil {
			t.Fatal(err)
		}
		err = table.Rows(t.Context(), []kv.NodeID{0, 1, 2}, func(i int, row tables.Writer) {
			row.Float32(float32(i))
		})
		if err := errors.Join(err, table.Commit(), table.Abort()); err != nil {
			t.Fatal(err)
		}
		b := mustRead(t, fs, "p.npy")
		n := 12 + int(binary.LittleEndian.Uint32([]byte(b[8:])))
		if !strings.Contains(b[:n], c.header) || !strings.Contains(b[:n], "'shape': (3,)") ||
			len(b) != n+3*c.width {
			t.Errorf("%s: %d bytes, header %q", kind, len(b), b[:n])
		}
		first := binary.LittleEndian.Uint32([]byte(b[n:]))
		if want, err := strconv.Atoi(c.ids[0]); err == nil && first != uint32(want) ||
			err != nil && first != 'é' {
			t.Errorf("%s: the first record begins with %d", kind, first)
		}
	}
}

// TestTableOfCSV: a vector takes a column for each value, and nothing is left of a table that is
// given up.
func TestTableOfCSV(t *testing.T) {
	fs := vfs.NewMem()
	for _, name := range []string{"kept.csv", "given-up.csv"} {
		table, err := CreateTable(t.Context(), TableSpec{FS: fs, Path: name,
			Meta: &kv.Meta{Nodes: 1}, Names: named{ids: []string{"a,b"}},
			Columns: []tables.Column{{Name: "vector", Kind: tables.Vector, Width: 2},
				{Name: "n", Kind: tables.Int64}}})
		if err != nil {
			t.Fatal(err)
		}
		err = table.Rows(t.Context(), []kv.NodeID{0}, func(i int, row tables.Writer) {
			row.Vector([]float32{0.5, -1e10})
			row.Int64(-3)
		})
		if name == "kept.csv" {
			err = errors.Join(err, table.Commit())
		}
		if err := errors.Join(err, table.Abort()); err != nil {
			t.Fatal(err)
		}
	}
	if got := mustRead(t, fs, "kept.csv"); got != "id,v0,v1,n\n\"a,b\",0.5,-1e+10,-3\n" {
		t.Errorf("%q", got)
	}
	if names, err := fs.List(""); err != nil || len(names) != 1 {
		t.Errorf("there are %v: %v", names, err)
	}
}
