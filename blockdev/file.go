package blockdev

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// access says how a file is read. A device may use several ways: it reads a file on tmpfs through
// the page cache, and a file of an in-memory file system through the file's own ReadAt.
type access uint8

const (
	direct access = iota // O_DIRECT on a descriptor of the device's own
	cached               // the file system's descriptor, through the page cache
	mapped               // copied out of a memory map
	viaFS                // vfs.File.ReadAt
)

// file is a file that a device has opened. Batches hold its gate while they read, so that Close
// waits for them: if a descriptor was closed and reused during a read, the read would return
// another file's bytes.
type file struct {
	dev  *device
	path string
	size int64
	how  access

	src    vfs.File // owns the descriptor of cached files; kept so that no finalizer closes it
	fd     int      // the descriptor to read from, for direct and cached
	slot   int32    // index in the ring's table of registered files, or -1
	mapped []byte   // for mapped
	gate   gate
}

// Path returns the name by which the file was opened.
func (f *file) Path() string { return f.path }

// Size returns the length of the file when it was opened.
func (f *file) Size() int64 { return f.size }

// Close waits for reads that are in flight and closes the file.
func (f *file) Close() error {
	if !f.gate.shut() {
		return fmt.Errorf("blockdev: close %s: %w", f.path, ErrClosed)
	}
	f.dev.engine.detach(f)
	if err := f.free(); err != nil {
		return fmt.Errorf("blockdev: close %s: %w", f.path, err)
	}
	return nil
}

// free releases what the file holds. It may be called when opening has failed half way.
func (f *file) free() error {
	var errs []error
	if f.mapped != nil {
		errs = append(errs, unmap(f.mapped))
		f.mapped = nil
	}
	if f.how == direct {
		errs = append(errs, closeDirect(f.fd))
	}
	return errors.Join(append(errs, f.src.Close())...)
}

// sizeNow asks the file system for the current length, to tell a truncated file from a short read.
func (f *file) sizeNow() (int64, error) {
	st, err := f.src.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// readAt makes one attempt to read and returns the answer of the kernel or the file system, which
// may be short or interrupted. At the end of the file it returns 0 bytes and no error.
func (f *file) readAt(buf []byte, off int64) (int, error) {
	switch f.how {
	case mapped:
		return copyMapped(buf, f.mapped, off)
	case viaFS:
		n, err := f.src.ReadAt(buf, off)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	default:
		return pread(f.fd, buf, off)
	}
}

// OpenFile opens path of fs. It reads in the way of this device, or in the next best way, which
// Info then reports.
func (d *device) OpenFile(fs vfs.FS, path string) (File, error) {
	if !d.gate.enter() {
		return nil, fmt.Errorf("blockdev: open %s: device is %w", path, ErrClosed)
	}
	defer d.gate.leave()
	src, err := fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("blockdev: open %s: %w", path, err)
	}
	f := &file{dev: d, path: path, src: src, fd: -1, slot: -1, how: viaFS}
	if err := f.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("blockdev: open %s: %w", path, err), f.free())
	}
	d.engine.attach(f)
	return f, nil
}

// prepare checks the file and chooses how to read it.
func (f *file) prepare() error {
	st, err := f.src.Stat()
	if err != nil {
		return err
	}
	if st.IsDir() {
		return errors.New("is a directory")
	}
	if f.size = st.Size(); f.size%Align != 0 {
		return fmt.Errorf("%d bytes are not a whole number of %d: %w", f.size, Align, ErrLength)
	}
	fd := f.src.Fd()
	if fd == vfs.InvalidFd || !hasDescriptors || f.dev.info.Backend == Memory {
		f.how = viaFS
		return nil
	}
	switch f.dev.info.Backend {
	case MMap:
		if f.mapped, err = mapFile(int(fd), f.size); err == nil {
			f.how = mapped
		}
		return err
	case Buffered:
		f.how, f.fd = cached, int(fd)
		return adviseRandom(f.fd)
	default:
		return f.prepareDirect(int(fd))
	}
}

// prepareDirect reopens the file with O_DIRECT. If the file system or the disk does not allow
// direct reads of Align bytes, the file is read through the page cache.
func (f *file) prepareDirect(fd int) error {
	own, refusal, err := openDirect(fd, f.size)
	if err != nil {
		return err
	}
	if refusal == "" {
		f.how, f.fd = direct, own
		return nil
	}
	f.dev.noteCached(f.path, refusal)
	f.how, f.fd = cached, fd
	return adviseRandom(fd)
}
