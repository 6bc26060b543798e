package columnfile

import (
	"fmt"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustOpen(t *testing.T, s *layout.Store, dev blockdev.Device) *Reader {
	t.Helper()
	r, err := OpenPath(t.Context(), s, dev, "x.col", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCheck finds blocks of which their page says something else than is true.
func TestCheck(t *testing.T) {
	fs, dev := vfs.NewMem(), layouttest.Device(t)
	w, err := NewWriter(fs, "x.col", Spec{Name: "x", Path: "x.col", Type: Int64})
	if err != nil {
		t.Fatal(err)
	}
	var v Values
	for i := range 30_000 {
		v.Ints = append(v.Ints, int64(i)*1e15)
		v.AddRow(true)
	}
	if err := w.Append(&v); err != nil {
		t.Fatal(err)
	}
	_, m, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	m.Checksum = 0
	s := layout.NewStore(fs, "", &kv.Meta{Files: []kv.FileMeta{m}})
	whole := layouttest.ReadFile(t, fs, "x.col")
	for what, change := range map[string]func(p *page){
		"":                         func(*page) {},
		"block 1: 0 rows are null": func(p *page) { p.entries[0].nulls++ },
		"block 9: 0 rows are null": func(p *page) { p.entries[8].least-- },
		"block 3: 0 rows are null": func(p *page) { p.entries[2].greatest = 0 },
	} {
		r := mustOpen(t, s, dev)
		b, at, p := append([]byte{}, whole...), r.pages[0], page{}
		if err := r.decodePage(0, b[at:at+layout.PageBytes], &p); err != nil {
			t.Fatal(err)
		}
		change(&p)
		p.encode(b[at : at+layout.PageBytes])
		r.seal(pageNumber|1, b[at:at+layout.PageBytes])
		layouttest.WriteFile(t, fs, "x.col", b)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		r = mustOpen(t, s, dev)
		var found []string
		err := r.Check(t.Context(), func(block, _ int64, what string) {
			found = append(found, fmt.Sprintf("block %d: %s", block, what))
		})
		if err != nil || !strings.HasPrefix(strings.Join(found, "; "), what) ||
			(what == "") != (len(found) == 0) {
			t.Errorf("%v, %v, want %q", found, err, what)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
