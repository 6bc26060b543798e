package ingest

import (
	"fmt"
	"strings"
	"testing"

	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// carriedCases are columns of edges that carry their rows.
var carriedCases = []struct {
	name, columns string
	value         func(i int) string
	opt           Options
	sorted        bool // ids are numbered by sorting
	rowBytes      int
}{
	{"integers", "since", year, Options{}, false, 3},
	{"ids are sorted", "since", year, Options{}, true, 3},
	{"later rows are larger", "n", func(i int) string { return fmt.Sprint(i * i * i * i) },
		Options{}, false, 11},
	{"later rows are too large", "s", func(i int) string { return strings.Repeat("x", i/100) },
		Options{}, false, 0},
	{"undirected", "score", func(i int) string { return fmt.Sprintf("%d.25", i)[:i%7%4] },
		Options{Undirected: true, KeepDuplicates: true}, false, 11},
	{"merged", "weight,word,day", func(i int) string {
		return fmt.Sprintf("%d,w%d,2020-01-%02d", i%3, i%50, 1+i%31)
	}, Options{Merge: "sum"}, false, 11},
	{"divided", "since", year, Options{EdgeSplit: "random=50/25/25"}, false, 3},
}

func year(i int) string { return fmt.Sprint(1990 + i%36) }

// carriedStore ingests a case, whose edges carry their rows or not.
func carriedStore(t *testing.T, i int, carries bool) (stored map[string]string, rowBytes int) {
	t.Helper()
	c, fs := &carriedCases[i], vfs.NewMem()
	text := []byte("src,dst," + c.columns + "\n")
	for i := range 4000 {
		text = fmt.Appendf(text, "%d,%d,%s\n", i*i%97, i%50, c.value(i))
	}
	if err := files.WriteAtomic(fs, "e.csv", text); err != nil {
		t.Fatal(err)
	}
	opt := c.opt
	opt.Out, opt.Options = "store", source.Options{Sources: []string{"e.csv"}}
	src, err := source.Open(t.Context(), fs, &opt.Options)
	if err != nil {
		t.Fatal(err)
	}
	p := fixedIdentity(small(t, fs, src, opt))
	if c.sorted {
		p.Memory.IDs = 8
	}
	if carries {
		p.Memory.Strings, p.Budget = 64<<20, mem.NewBudget(1<<30)
	}
	if _, err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return storeFiles(t, fs, "store"), p.codec.RowBytes
}

// TestCarriedRows: a store is the same, byte for byte, whether edges carry the rows of their tables
// through the sorts or rows are sorted by themselves.
func TestCarriedRows(t *testing.T) {
	for i, c := range carriedCases {
		t.Run(c.name, func(t *testing.T) {
			got, rowBytes := carriedStore(t, i, true)
			if rowBytes != c.rowBytes {
				t.Errorf("edges carry %d bytes of rows, want %d", rowBytes, c.rowBytes)
			}
			want, rowBytes := carriedStore(t, i, false)
			if rowBytes != 0 {
				t.Errorf("rows of %d bytes are carried, want them apart", rowBytes)
			}
			columns := 0
			for path := range want {
				if strings.Contains(path, "columns/edges") {
					columns++
				}
			}
			if columns < 2 {
				t.Errorf("%d files of columns of edges", columns)
			}
			sameFiles(t, got, want)
		})
	}
}
