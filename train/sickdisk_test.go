package train

import (
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"gdb/blockdev"
	"gdb/blockdev/devtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disease is what is wrong with a disk.
type disease string

const (
	// oneError fails one operation, with EIO.
	oneError disease = "EIO"
	// fullDisk fails the operation and everything after it that takes room, with ENOSPC; a write
	// that is begun leaves half of its bytes.
	fullDisk disease = "full disk"
	// shortRead answers one read with fewer bytes than there are, as is allowed.
	shortRead disease = "short read"
	// cutOff answers one read as if the file ended in the middle of it.
	cutOff disease = "cut off"
)

var diseases = []disease{oneError, fullDisk, shortRead, cutOff}

// errInjected is the text of all injected errors.
const errInjected = "injected"

// sickDisk is a file system, and a device over it, with one disease. The operations on each kind of
// file are counted; the disease breaks out at one of them.
type sickDisk struct {
	vfs.FS
	at  place // where its disease breaks out, at the nth operation
	nth int

	free    int64             // bytes that it says are free; 0: it does not tell
	written func(name string) // is called after each write, if it is not nil

	mu   sync.Mutex
	seen map[place]int // operations
	open map[*sickFile]string
	ill  bool   // a disk that is full now
	op   string // the operation at which it broke out, "" before
	name string // its file
	off  int64  // its offset if it was a read, else -1
}

func newSickDisk(fs vfs.FS) *sickDisk {
	return &sickDisk{FS: fs, seen: map[place]int{}, open: map[*sickFile]string{}}
}

// kindOf names the kind of a store's file, "" for those that nothing may happen to: locks, and
// directories that tests look at.
func kindOf(name string) string {
	base := path.Base(name)
	switch {
	case base == "LOCK":
		return ""
	case strings.Contains(name, "/catalog"):
		return "catalog"
	case strings.Contains(name, "/prep/superbatch-"):
		return "superbatch" + path.Ext(base)
	case strings.HasPrefix(base, "neighbors-"):
		return "neighbor cache"
	case strings.Contains(name, "/checkpoint-"):
		return "checkpoint"
	case strings.Contains(name, "/"+hiddenFolder):
		return "hidden states"
	}
	for _, kind := range []string{"CURRENT", "metrics.jsonl", "run.json"} {
		if strings.HasPrefix(base, kind) {
			return kind
		}
	}
	for _, kind := range []string{"topology", "features", "labels"} {
		if strings.Contains(name, "/"+kind+"/") {
			return kind
		}
	}
	return ""
}

// place is where a disease breaks out: at some operation on a kind of file.
type place struct {
	kind string
	what disease
}

// meets says whether a disease breaks out at an operation: what is short is the answer to a read,
// and what finds no room is new bytes.
func (d disease) meets(op string) bool {
	switch d {
	case shortRead, cutOff:
		return op == "read"
	case fullDisk:
		return op == "create" || op == "write" || op == "make"
	}
	return true
}

// fault says what happens to an operation.
func (d *sickDisk) fault(op, name string, off int64) disease {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ill && fullDisk.meets(op) {
		return fullDisk
	}
	kind, found := kindOf(name), disease("")
	for _, what := range diseases {
		p := place{kind, what}
		if kind == "" || !what.meets(op) || kind == "catalog" && what == shortRead {
			continue // Pebble trusts the contract of io.ReaderAt, which knows no short reads
		}
		if nth := d.seen[p]; p == d.at && nth == d.nth {
			d.op, d.name, d.off, d.ill, found = op, name, off, what == fullDisk, what
		}
		d.seen[p]++
	}
	return found
}

// left lists the files that are open.
func (d *sickDisk) left() (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range d.open {
		names = append(names, name)
	}
	return names
}

func (d *sickDisk) fail(op, name string) error {
	switch d.fault(op, name, -1) {
	case "":
		return nil
	case fullDisk:
		return &os.PathError{Op: op, Path: name, Err: fmt.Errorf("%s: %w", errInjected,
			syscall.ENOSPC)}
	}
	return &os.PathError{Op: op, Path: name, Err: fmt.Errorf("%s: %w", errInjected, syscall.EIO)}
}

func (d *sickDisk) opened(f vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	s := &sickFile{File: f, d: d, name: name}
	d.mu.Lock()
	d.open[s] = name
	d.mu.Unlock()
	return s, nil
}

func (d *sickDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.fail("create", name); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name, c)
	return d.opened(f, name, err)
}

func (d *sickDisk) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := d.fail("open", name); err != nil {
		return nil, err
	}
	f, err := d.FS.Open(name)
	return d.opened(f, name, err)
}

func (d *sickDisk) OpenDir(name string) (vfs.File, error) {
	if err := d.fail("open directory", name); err != nil {
		return nil, err
	}
	f, err := d.FS.OpenDir(name)
	return d.opened(f, name, err)
}

func (d *sickDisk) Remove(name string) error {
	if err := d.fail("remove", name); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

func (d *sickDisk) RemoveAll(name string) error {
	if err := d.fail("remove all", name); err != nil {
		return err
	}
	return d.FS.RemoveAll(name)
}

func (d *sickDisk) Rename(from, to string) error {
	if err := d.fail("rename", to); err != nil {
		return err
	}
	return d.FS.Rename(from, to)
}

func (d *sickDisk) MkdirAll(name string, perm os.FileMode) error {
	if err := d.fail("make", name); err != nil {
		return err
	}
	return d.FS.MkdirAll(name, perm)
}

func (d *sickDisk) GetDiskUsage(name string) (vfs.DiskUsage, error) {
	if d.free > 0 {
		return vfs.DiskUsage{AvailBytes: uint64(d.free)}, nil
	}
	return d.FS.GetDiskUsage(name)
}

func (d *sickDisk) Unwrap() vfs.FS { return d.FS }

// sickFile is a file on a sick disk.
type sickFile struct {
	vfs.File
	d    *sickDisk
	name string
	off  int64 // of sequential reads
}

func (f *sickFile) Close() error {
	f.d.mu.Lock()
	delete(f.d.open, f)
	f.d.mu.Unlock()
	err := f.File.Close()
	if bad := f.d.fail("close", f.name); bad != nil {
		return bad
	}
	return err
}

func (f *sickFile) Sync() error {
	if err := f.d.fail("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *sickFile) Write(b []byte) (int, error) {
	switch f.d.fault("write", f.name, -1) {
	case "":
		n, err := f.File.Write(b)
		if f.d.written != nil {
			f.d.written(f.name)
		}
		return n, err
	case fullDisk:
		n, err := f.File.Write(b[:len(b)/2])
		if err == nil {
			err = fmt.Errorf("%s: %w", errInjected, syscall.ENOSPC)
		}
		return n, err
	}
	return 0, fmt.Errorf("%s: %w", errInjected, syscall.EIO)
}

func (f *sickFile) ReadAt(b []byte, off int64) (int, error) {
	return f.read(b, off, func(b []byte) (int, error) { return f.File.ReadAt(b, off) })
}

func (f *sickFile) Read(b []byte) (int, error) {
	n, err := f.read(b, f.off, f.File.Read)
	f.off += int64(n)
	return n, err
}

func (f *sickFile) read(b []byte, off int64, read func([]byte) (int, error)) (int, error) {
	switch f.d.fault("read", f.name, off) {
	case "":
		return read(b)
	case shortRead:
		return read(b[:(len(b)+1)/2])
	case cutOff:
		n, err := read(b[:len(b)/2])
		if err == nil {
			err = io.EOF
		}
		return n, err
	}
	return 0, fmt.Errorf("%s: %w", errInjected, syscall.EIO)
}

// device reads the files of the disk through dev, with the same disease.
func (d *sickDisk) device(dev blockdev.Device) blockdev.Device {
	return devtest.Inject(dev, func(name string, off int64, _ uint64) devtest.Fault {
		switch d.fault("read", name, off) {
		case "":
			return devtest.Fault{}
		case shortRead:
			return devtest.Fault{Short: blockdev.Align}
		case cutOff:
			return devtest.Fault{Err: blockdev.ErrTruncated, Got: blockdev.Align}
		}
		return devtest.Fault{Err: fmt.Errorf("%s: %w", errInjected, syscall.EIO), Got: 100}
	})
}
