package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestReadLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := ReadSmall(vfs.Default, path, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadSmall(vfs.Default, path, 10); err != nil || string(b) != "0123456789" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := ReadSmall(vfs.Default, path, 9); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte too many: %v", err)
	}
}

// TestSparseFileTakesNoMemory: a file of 1 TiB takes no block of the disk, and none of memory.
func TestSparseFileTakesNoMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skipf("no sparse file of 1 TiB here: %v", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadSmall(vfs.Default, path, 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("whole: %v", err)
	}
	err := ReadLines(vfs.Default, path, 1<<20, func([]byte) error { return nil })
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("by line: %v", err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

func TestLines(t *testing.T) {
	mem := vfs.NewMem()
	f, err := mem.Create("log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("one\n\nthree\nlast")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	collect := func(line []byte) error { got = append(got, string(line)); return nil }
	if err := ReadLines(mem, "log", 6, collect); err != nil ||
		!slices.Equal(got, []string{"one", "", "three", "last"}) {
		t.Errorf("%q, %v", got, err)
	}
	stop := errors.New("stop")
	if err := ReadLines(mem, "log", 6, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the caller: %v", err)
	}
	if err := ReadLines(mem, "log", 4, collect); !errors.Is(err, ErrTooLarge) ||
		!strings.Contains(err.Error(), "line 3") {
		t.Errorf("a long line: %v", err)
	}
}
