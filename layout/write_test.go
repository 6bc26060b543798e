package layout_test

import (
	"errors"
	"testing"

	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errFull = errors.New("the disk is full")

// TestWriteErrors fails every write: writers say so, and close what they opened.
func TestWriteErrors(t *testing.T) {
	fs := &fullDisk{FS: vfs.NewMem()}
	for n := range 8 {
		fs.left = n
		err := writeAll(fs)
		if n < 6 && !errors.Is(err, errFull) {
			t.Errorf("write %d failed, the writers say %v", n, err)
		}
		if fs.open != 0 {
			t.Fatalf("write %d failed, %d files are open", n, fs.open)
		}
	}
}

func writeAll(fs vfs.FS) error {
	w, err := listfile.NewWriter(fs, "x", listfile.Spec{Nodes: 10})
	if err != nil {
		return err
	}
	for v := range layout.NodeID(10) {
		if err := w.AddEdge(v, listfile.Edge{}); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	if _, err := w.Finish(); err != nil {
		return errors.Join(err, w.Abort())
	}
	rw, err := rowfile.NewWriter(fs, "y", rowfile.Spec{Name: "y", Path: "y.rows",
		DType: "f32", Dim: 1, Nodes: 1})
	if err != nil {
		return err
	}
	if err := rw.AddF32([]float32{1}); err != nil {
		return errors.Join(err, rw.Abort())
	}
	if _, _, err := rw.Finish(); err != nil {
		return errors.Join(err, rw.Abort())
	}
	return nil
}

// fullDisk is a file system that fails after a number of operations that write.
type fullDisk struct {
	vfs.FS
	left, open int
}

func (d *fullDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	if err == nil {
		d.open++
	}
	return &fullFile{f, d}, err
}

type fullFile struct {
	vfs.File
	d *fullDisk
}

func (f *fullFile) step() error {
	if f.d.left--; f.d.left < 0 {
		return errFull
	}
	return nil
}

func (f *fullFile) Write(b []byte) (int, error) {
	if err := f.step(); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f *fullFile) Sync() error {
	if err := f.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *fullFile) Close() error {
	f.d.open--
	return f.File.Close()
}
