package inspect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/inspect"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustColumn writes rows to a store that has nothing else.
func mustColumn(t *testing.T, fs vfs.FS, typ string, v columnfile.Values) *layout.Store {
	t.Helper()
	m := &kv.Meta{UUID: kv.UUID{7}}
	err := fs.MkdirAll("s", 0o755)
	w, err2 := columnfile.NewWriter(fs, "s/x.col", columnfile.Spec{UUID: m.UUID, Name: "kind",
		Path: "x.col", Type: typ})
	if err = errors.Join(err, err2); err == nil {
		err = w.Append(&v)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, f, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	m.Files = []kv.FileMeta{f}
	return layout.NewStore(fs, "s", m)
}

// TestColumns finds a flipped bit of any byte of a column, and of several blocks, and prints
// blocks.
func TestColumns(t *testing.T) {
	fs, dev := vfs.NewMem(), layouttest.Device(t)
	var v columnfile.Values
	for i := range 20_000 {
		if null := i%50 == 7; null {
			v.Strings.Add(nil)
			v.AddRow(false)
			continue
		}
		v.Strings.Add(fmt.Appendf(nil, "kind %d", i%30))
		v.AddRow(true)
	}
	s := mustColumn(t, fs, columnfile.String, v)
	findings := func() []kv.Finding {
		t.Helper()
		r, err := inspect.Check(t.Context(), dev, s, inspect.CheckOptions{Full: true,
			File: "x.col"})
		if err != nil {
			t.Fatal(err)
		}
		return r.Findings
	}
	if f := findings(); len(f) > 0 {
		t.Fatal(f)
	}
	whole := layouttest.ReadFile(t, fs, "s/x.col")
	for off := int64(0); off < int64(len(whole)); off += 301 {
		layouttest.Flip(t, fs, "s/x.col", off, 1)
		if f := findings(); len(f) != 1 || f[0].Path != "x.col" {
			t.Errorf("bit at %d: %v", off, f)
		}
		layouttest.Flip(t, fs, "s/x.col", off, 1)
	}
	for _, off := range []int64{4096 + 100, 16000} { // two blocks
		layouttest.Flip(t, fs, "s/x.col", off, 1)
	}
	if f := findings(); len(f) != 2 || f[0].Block != 1 || f[1].Block < 2 || f[0].Offset != 4096 {
		t.Error(f)
	}
	dump := func(block int64, decode bool) string {
		t.Helper()
		var out strings.Builder
		if err := inspect.DumpBlock(t.Context(), s, dev,
			inspect.BlockOf{Path: "x.col", Number: block, Decode: decode}, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := dump(1, true); !strings.Contains(got, "BAD") {
		t.Error(got)
	}
	layouttest.WriteFile(t, fs, "s/x.col", whole)
	for block, want := range map[int64]string{0: `name "kind"`, 1: "row 7: null",
		2: `"kind `, 5: "row 7: \"kind 8\""} {
		if got := dump(block, true); !strings.Contains(got, want) || strings.Contains(got, "BAD") {
			t.Errorf("block %d has no %q:\n%s", block, want, got)
		}
	}
	if got := dump(1, false); !strings.HasPrefix(got, "000") {
		t.Error(got)
	}
	err := inspect.DumpBlock(t.Context(), s, dev, inspect.BlockOf{Path: "x.col", Number: 99},
		&strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "has the blocks 0 to 5") {
		t.Error(err)
	}
}
