package live

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout/ingest"
	"gdb/layout/parts"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCompactedBytes: a compacted store has the same bytes in each file, and the same catalog but
// for when and of what it was made, as an ingest of the same content with the same identity.
func TestCompactedBytes(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			h, fs := newHistory(rand.New(rand.NewPCG(seed, 4))), vfs.NewMem()
			if seed >= 8 { // edges are in splits: each commit writes the store anew
				h.opt.EdgeSplit, h.opt.Seed = "random=60/20/20", seed
			}
			h.ingest(t, fs, h.parts[0], "live")
			for _, p := range h.parts[1:] {
				opt := h.options(t, fs, p, false)
				if _, err := Append(t.Context(), fs, "live", opt); err != nil {
					t.Fatal(err)
				}
			}
			opt := parts.OrderOptions{Memory: 1 << 30}
			m, err := Compact(t.Context(), fs, "live", opt)
			if err != nil {
				t.Fatal(err)
			}
			once := h.options(t, fs, h.whole(), true)
			once.Out, once.UUID = "once", m.UUID
			want, err := ingest.Run(t.Context(), fs, once)
			if err != nil {
				t.Fatal(err)
			}
			sameFiles(t, fs, "live", m, "once", want)
			got, plain := made(m), made(want)
			if !reflect.DeepEqual(got, plain) {
				t.Errorf("catalog:\n%+v\nof an ingest:\n%+v", got, plain)
			}
		})
	}
}

// sameFiles compares the files of a compacted store with those of another.
//
//lint:parameters two stores, each a folder and its metadata
func sameFiles(t *testing.T, fs vfs.FS, dir string, m *kv.Meta, other string, want *kv.Meta) {
	t.Helper()
	if len(m.Files) != len(want.Files) {
		t.Errorf("%d files, want %d", len(m.Files), len(want.Files))
	}
	for _, f := range want.Files {
		a, err := files.ReadSmall(fs, fs.PathJoin(dir, m.Base, f.Path), 1<<26)
		if err != nil {
			t.Fatal(err)
		}
		b, err := files.ReadSmall(fs, fs.PathJoin(other, f.Path), 1<<26)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			t.Errorf("%s: %d bytes, want %d; the first other one is at %d", f.Path, len(a), len(b),
				at)
		}
	}
}

// made returns the metadata of a store without what tells how and when it was made.
func made(m *kv.Meta) kv.Meta {
	of := *m
	of.CreatedBy, of.Created, of.Committed = "", time.Time{}, time.Time{}
	of.Source, of.Manifest, of.Snapshot, of.Base, of.Rewrites = kv.SourceMeta{}, 0, 0, "", 0
	of.Numbered, of.Moved = 0, 0
	of.Splits = slices.Clone(m.Splits)
	for i := range of.Splits {
		of.Splits[i].Set = ""
	}
	if len(of.FeatureNames) == 0 {
		of.FeatureNames = nil
	}
	s := &of.Stats
	s.EdgesRead, s.DroppedSelfLoops, s.DroppedDuplicates = 0, 0, 0 // of what was read
	return of
}
