package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gdb/cmd/gdb/cli"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readOnlyFS refuses to change anything, as a file system that is mounted read-only does. With
// locks it lets lock files be: they are how readers keep out of a writer's way.
type readOnlyFS struct {
	vfs.FS
	locks bool

	mu      sync.Mutex
	refused []string
}

func (f *readOnlyFS) refuse(op, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, op+" "+path)
	return &os.PathError{Op: op, Path: path, Err: syscall.EROFS}
}

func (f *readOnlyFS) Create(path string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, f.refuse("create", path)
}

func (f *readOnlyFS) OpenReadWrite(path string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (
	vfs.File, error) {
	return nil, f.refuse("open", path)
}

func (f *readOnlyFS) ReuseForWrite(_, path string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, f.refuse("reuse", path)
}

func (f *readOnlyFS) Link(_, path string) error   { return f.refuse("link", path) }
func (f *readOnlyFS) Rename(_, path string) error { return f.refuse("rename", path) }
func (f *readOnlyFS) RemoveAll(path string) error { return f.refuse("remove", path) }

// ofReaders reports whether a path is the folder of the locks of readers, or one of them.
func ofReaders(path string) bool {
	return filepath.Base(path) == layout.ReadersDir ||
		filepath.Base(filepath.Dir(path)) == layout.ReadersDir
}

func (f *readOnlyFS) Remove(path string) error {
	if ofReaders(path) && f.locks {
		return f.FS.Remove(path)
	}
	return f.refuse("remove", path)
}

func (f *readOnlyFS) MkdirAll(path string, perm os.FileMode) error {
	switch {
	case !ofReaders(path):
		return f.refuse("mkdir", path)
	case !f.locks:
		return &os.PathError{Op: "mkdir", Path: path, Err: syscall.EROFS}
	}
	return f.FS.MkdirAll(path, perm)
}

func (f *readOnlyFS) Lock(path string) (io.Closer, error) {
	if !f.locks {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EROFS}
	}
	return f.FS.Lock(path)
}

func (f *readOnlyFS) Unwrap() vfs.FS { return f.FS }

// storeState lists every file of a store with its size and time.
func storeState(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, path := range storeFiles(t, dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, path, info.Size(), info.ModTime())
	}
	return b.String()
}

// TestReadersWriteNothing runs the commands that only read, also where nothing can be written:
// they work, and change nothing in the store.
func TestReadersWriteNothing(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "g.gdb")
	for _, args := range [][]string{append(csvGraph(t, dir, 300, 2000), "--out", store),
		{"train", store, "--run", "a", "--fanout", "3", "--epochs", "1"}} {
		if code, _, stderr := gdbOutput(t, args...); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
	}
	before := storeState(t, store)
	for _, locks := range []bool{false, true} {
		for _, args := range [][]string{{"info", store}, {"check", store, "--full"},
			{"shell", store, "-c", "DESCRIBE; NEIGHBORS n1; LABELS n2; SAMPLE n1 FANOUT 2;"},
			{"eval", store, "--run", "a"}, {"ingest", "--edges", filepath.Join(dir, "edges.csv"),
				"--out", filepath.Join(dir, "new.gdb"), "--dry-run"}} {
			fs := &readOnlyFS{FS: vfs.Default, locks: locks}
			var stderr strings.Builder
			a := &app{cli.App{Streams: cli.Streams{In: strings.NewReader(""), Out: io.Discard,
				Err: &stderr}, FS: fs}}
			root := a.rootCommand()
			root.SetArgs(args)
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Errorf("gdb %s, locks %v: %v; %s", args[0], locks, err, stderr.String())
			}
			if len(fs.refused) > 0 {
				t.Errorf("gdb %s, locks %v: wants to %s", args[0], locks, fs.refused)
			}
			if after := storeState(t, store); after != before {
				t.Errorf("gdb %s: the store changed:\n%s\nwas\n%s", args[0], after, before)
				before = after
			}
		}
	}
}
