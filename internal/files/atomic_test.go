package files

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func mustRead(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCrashAnywhere crashes after each operation of a second write: there is the first contents or
// the second, and after the write has returned there is the second.
func TestCrashAnywhere(t *testing.T) {
	before, after := bytes.Repeat([]byte("a"), 5000), bytes.Repeat([]byte("b"), 7000)
	for crash := range int32(20) {
		fs := vfs.NewCrashableMem()
		if err := fs.MkdirAll("d", 0o755); err != nil {
			t.Fatal(err)
		}
		err := errors.Join(WriteAtomic(fs, "d/f", bytes.Clone(before)), SyncDir(fs, ""),
			SyncDir(fs, "d"))
		if err != nil {
			t.Fatal(err)
		}
		var clone *vfs.MemFS
		n := int32(0)
		counting := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if n++; n == crash {
				clone = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50,
					RNG: rand.New(rand.NewPCG(1, uint64(crash)))})
			}
			return nil
		}))
		if err := WriteAtomic(counting, "d/f", bytes.Clone(after[:3000]),
			bytes.Clone(after[3000:])); err != nil {
			t.Fatal(err)
		}
		done := clone == nil
		if done {
			clone = fs.CrashClone(vfs.CrashCloneCfg{})
		}
		got := mustRead(t, clone, "d/f")
		if !bytes.Equal(got, after) && (done || !bytes.Equal(got, before)) {
			t.Fatalf("crash at operation %d: %d bytes that begin with %.3q", crash, len(got), got)
		}
	}
}

// TestFailureLeavesNothing fails each operation that writes: the old contents stay, and nothing is
// beside them.
func TestFailureLeavesNothing(t *testing.T) {
	for _, op := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync,
		errorfs.OpRename} {
		fs := vfs.NewMem()
		if err := WriteAtomic(fs, "f", []byte("old")); err != nil {
			t.Fatal(err)
		}
		failing := errorfs.Wrap(fs, errorfs.InjectorFunc(func(o errorfs.Op) error {
			if o.Kind == op && o.Path != "" {
				return errorfs.ErrInjected
			}
			return nil
		}))
		if err := WriteAtomic(failing, "f", []byte("new")); !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("operation %d: %v, want the injected error", op, err)
		}
		names, err := fs.List("")
		if err != nil || len(names) != 1 || string(mustRead(t, fs, "f")) != "old" {
			t.Errorf("operation %d: there are %v, %v", op, names, err)
		}
	}
}

func TestAbort(t *testing.T) {
	fs := vfs.NewMem()
	f, err := CreateAtomic(fs, "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Abort(), f.Abort()); err != nil {
		t.Fatal(err)
	}
	if names, err := fs.List(""); err != nil || len(names) != 0 {
		t.Fatalf("there are %v, %v", names, err)
	}
}

// TestPieces: a file of parts that are written in several pieces is these, and they are as they
// were, although files may change what is written to them.
func TestPieces(t *testing.T) {
	fs := vfs.NewMem()
	var parts [][]byte
	for i, n := range []int{10, 0, 5*pieceBytes/2 + 3, pieceBytes} {
		parts = append(parts, bytes.Repeat([]byte{byte(i), 7, 9}, n))
	}
	want := bytes.Join(parts, nil)
	if err := WriteAtomic(fs, "f", parts...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(mustRead(t, fs, "f"), want) || !bytes.Equal(bytes.Join(parts, nil), want) {
		t.Error("the file is not what its parts are")
	}
}
