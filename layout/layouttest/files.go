package layouttest

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReadFile returns the bytes of a file.
func ReadFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// WriteFile makes a file with the given bytes.
func WriteFile(t testing.TB, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(b)) // the file system may change the bytes that it is given
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Flip inverts bits of one byte of a file.
func Flip(t testing.TB, fs vfs.FS, path string, off int64, bits byte) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	b := []byte{0}
	_, err = f.ReadAt(b, off)
	b[0] ^= bits
	if err == nil {
		_, err = f.WriteAt(b, off)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Device opens a device that is closed when the test ends.
func Device(t testing.TB) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{})
}

// Rewrite replaces the bytes of a file by what change returns.
func Rewrite(t testing.TB, fs vfs.FS, path string, change func(b []byte) []byte) {
	t.Helper()
	WriteFile(t, fs, path, change(ReadFile(t, fs, path)))
}
