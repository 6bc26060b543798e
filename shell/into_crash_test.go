package shell

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/result"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

var errDisk = errors.New("the disk failed")

// written runs a script whose result goes to the file name, on the store of fs. before is called
// ahead of each operation that changes fs; if it returns an error, the operation fails with it.
func written(t *testing.T, fs vfs.FS, dev blockdev.Device, script string,
	before func(op errorfs.Op) error) error {
	t.Helper()
	armed := false
	store, err := layout.Open(t.Context(), errorfs.Wrap(fs, errorfs.InjectorFunc(
		func(op errorfs.Op) error {
			if !armed || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			return before(op)
		})), "s")
	if err != nil {
		t.Fatal(err)
	}
	armed = true
	return Run(t.Context(), Options{Store: store, Dev: dev, Out: &bytes.Buffer{},
		Err: &bytes.Buffer{}, Script: script, Memory: 64 << 20})
}

// fileScripts are statements whose result goes to a file of each kind.
var fileScripts = map[string]string{"n.csv": "NEIGHBORS ada INTO 'n.csv'",
	"n.jsonl": "NEIGHBORS ada INTO 'n.jsonl'", "n.parquet": "NEIGHBORS ada INTO 'n.parquet'",
	"n.npy": "NEIGHBORS ada INTO 'n.npy'", "n.md": ".once n.md\nNEIGHBORS ada;"}

const oldContent = "what was there before"

// syncAll makes what a test prepared survive a crash.
func syncAll(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	d, err := fs.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// mustOld prepares a file system with a store and an older file of that name.
func mustOld(t *testing.T, name string) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	layouttest.Build(t, fs, "s", richGraph())
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write([]byte(oldContent))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	syncAll(t, fs, "")
	return fs
}

// TestFileFails fails each operation of writing a result to a file: the statement fails, the file
// is the old one, or the new one and whole, and nothing is left beside it.
func TestFileFails(t *testing.T) {
	dev := mustDevice(t)
	for name, script := range fileScripts {
		whole := mustOld(t, name)
		err := written(t, whole, dev, script, func(errorfs.Op) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		want := readFile(t, whole, name)
		if want == oldContent || want == "" {
			t.Fatalf("%s was not written: %q", name, want)
		}
		failed := 0
		for at := 0; ; at++ {
			fs, n, hit := mustOld(t, name), 0, errorfs.Op{Kind: -1}
			err := written(t, fs, dev, script, func(op errorfs.Op) error {
				if n++; n-1 != at {
					return nil
				}
				hit = op
				return errDisk
			})
			if hit.Kind < 0 {
				break
			}
			failed++
			removes := hit.Kind == errorfs.OpRemove
			if !removes && !errors.Is(err, errDisk) {
				t.Errorf("%s: operation %d, %v %s: %v", name, at, hit.Kind, hit.Path, err)
			}
			if got := readFile(t, fs, name); got != oldContent && got != want {
				t.Errorf("%s: operation %d, %v %s, leaves %q", name, at, hit.Kind, hit.Path, got)
			}
			if left := mustList(t, fs); !removes && left != name+" s" {
				t.Errorf("%s: operation %d, %v %s, leaves %s", name, at, hit.Kind, hit.Path, left)
			}
		}
		if failed < 5 {
			t.Errorf("%s: only %d operations failed", name, failed)
		}
	}
}

func mustList(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List("")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestFileCrash stops the machine before each operation of writing a result to a file, with
// nothing, half and all of what was not synced on disk: the file is the old one, or the new one and
// whole. It is the new one once the statement has ended.
func TestFileCrash(t *testing.T) {
	dev, random := mustDevice(t), rand.New(rand.NewPCG(1, 2))
	for name, script := range fileScripts {
		fs := mustOld(t, name)
		var clones []*vfs.MemFS
		clone := func() {
			for _, percent := range []int{0, 50, 100} {
				clones = append(clones, fs.CrashClone(vfs.CrashCloneCfg{
					UnsyncedDataPercent: percent, RNG: random}))
			}
		}
		err := written(t, fs, dev, script, func(errorfs.Op) error { clone(); return nil })
		if err != nil {
			t.Fatal(err)
		}
		want := readFile(t, fs, name)
		clone()
		for i, c := range clones {
			got := readFile(t, c, name)
			if got != want && (got != oldContent || i >= len(clones)-3) {
				t.Errorf("%s: clone %d of %d holds %q", name, i, len(clones), got)
			}
		}
	}
}

// TestTwoWriters: of two results that go to one file at a time neither has a part of the other.
func TestTwoWriters(t *testing.T) {
	fs := vfs.NewMem()
	var written []*files.Atomic
	for range 2 {
		f, err := result.CreateFile(fs, "n.csv")
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, f)
	}
	for range 3 {
		for i, f := range written {
			if _, err := f.Write([]byte{'a' + byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, f := range written {
		if err := f.CommitContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat(string(rune('a'+i)), 3)
		if got := readFile(t, fs, "n.csv"); got != want {
			t.Errorf("writer %d is done: %q, want %q", i, got, want)
		}
	}
	if left := mustList(t, fs); left != "n.csv" {
		t.Errorf("%s is left", left)
	}
}
