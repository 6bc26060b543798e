package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func TestOneHolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		lock, err := Lock(fs, "lock")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		paths := []string{"lock"}
		if fs == vfs.Default { // the same file by another name
			paths = append(paths, filepath.Join(dir, "lock"))
		}
		for _, path := range paths {
			if _, err := Lock(fs, path); !errors.Is(err, ErrLockHeld) {
				t.Errorf("%s: taking %s twice: %v, want ErrHeld", name, path, err)
			}
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := Lock(fs, "lock")
		if err != nil {
			t.Fatalf("%s: after it was given back: %v", name, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOtherErrors are no signs of a holder.
func TestOtherErrors(t *testing.T) {
	if _, err := Lock(vfs.Default, filepath.Join(t.TempDir(), "no", "lock")); errors.Is(err,
		ErrLockHeld) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a directory that is not there: %v", err)
	}
}

// TestRemoved removes the file between opening and locking it.
func TestRemoved(t *testing.T) {
	fs := vfs.NewMem()
	removing := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpStat {
			return fs.Remove("lock")
		}
		return nil
	}))
	lock, err := Lock(removing, "lock")
	if !errors.Is(err, ErrLockRemoved) {
		t.Fatalf("%v, %v: want ErrRemoved", lock, err)
	}
	var again io.Closer
	if again, err = Lock(fs, "lock"); err != nil {
		t.Fatalf("the lock was kept: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
