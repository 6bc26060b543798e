package blockdev

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// access is how one file is read. A device may mix them: a file on tmpfs is read through the page
// cache, one of an in-memory file system through its own ReadAt.
type access uint8

const (
	direct access = iota // O_DIRECT on a descriptor of our own
	cached               // the file system's descriptor, through the page cache
	mapped               // copied out of a memory map
	viaFS                // vfs.File.ReadAt
)

// file is a file opened by a device. Batches hold its gate while they read, so that Close waits
// for them: a descriptor that is closed and reused under a read would yield another file's bytes.
type file struct {
	dev  *device
	path string
	size int64
	how  access

	src    vfs.File // owns the descriptor of cached files; kept so that no finalizer closes it
	fd     int      // what to read from, for direct and cached
	slot   int32    // index in the ring's table of registered files, or -1
	mapped []byte   // for mapped
	gate   gate
}

// Path is the name the file was opened with.
func (f *file) Path() string { return f.path }

// Size is the length of the file when it was opened.
func (f *file) Size() int64 { return f.size }

// Close waits for reads under way and closes the file.
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

// free gives back what the file holds, also when opening it failed half way.
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

// sizeNow asks the file system for the length, to tell truncation from a short read.
func (f *file) sizeNow() (int64, error) {
	st, err := f.src.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// readAt is one attempt to read, as the kernel or the file system answers it: it may be short or
// interrupted. The end of the file is a read of 0 bytes and not an error.
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

// OpenFile opens path of fs, in the way of this device or the next best one, which Info then tells.
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

// prepareDirect reopens the file with O_DIRECT, or reads it through the page cache where the file
// system or the disk does not take direct reads of Align bytes.
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
