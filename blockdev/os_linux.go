package blockdev

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// hasDescriptors says that files of the operating system are read by their descriptors here.
const hasDescriptors = true

// pread makes one attempt to read. It may be short, or fail with EINTR.
func pread(fd int, buf []byte, off int64) (int, error) { return unix.Pread(fd, buf, off) }

func closeDirect(fd int) error { return unix.Close(fd) }

// adviseRandom turns off read-ahead, which may read 8 MiB around every block.
func adviseRandom(fd int) error {
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM); err != nil {
		return fmt.Errorf("advise random reads: %w", err)
	}
	return nil
}

// DropCache removes n bytes of a file at off, or all bytes from off on if n is 0, from the page
// cache, which is charged to the memory cgroup of the process. Bytes that were not synced stay. It
// does nothing for a file without a descriptor, which has no bytes there.
func DropCache(f vfs.File, off, n int64) error {
	if f.Fd() == vfs.InvalidFd {
		return nil
	}
	if err := unix.Fadvise(int(f.Fd()), off, n, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("drop a file from the page cache: %w", err)
	}
	return nil
}

// setDirect makes the writes of a file bypass the page cache, or go through it again.
func setDirect(f vfs.File, direct bool) error {
	if f.Fd() == vfs.InvalidFd {
		return errors.ErrUnsupported
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("ask for a file's flags: %w", err)
	}
	if flags &^= unix.O_DIRECT; direct {
		flags |= unix.O_DIRECT
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFL, flags); err != nil {
		return fmt.Errorf("set a file's flags: %w", err)
	}
	return nil
}

// openDirect reopens the file behind fd with O_DIRECT and tries it with a read of Align bytes into
// memory that is aligned to Align and no more. If that does not work, refusal says why.
func openDirect(fd int, size int64) (own int, refusal string, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return -1, "", fmt.Errorf("ask for the file system: %w", err)
	}
	// Newer kernels let tmpfs open with O_DIRECT and read through the page cache all the same.
	if st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC {
		return -1, "a file system in memory has no O_DIRECT", nil
	}
	own, err = openRetry("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_DIRECT)
	if err != nil {
		return -1, fmt.Sprintf("opening with O_DIRECT: %s", errorText(err)), nil
	}
	if size == 0 {
		return own, "", nil
	}
	probe := AlignedBuffer(2 * Align)[Align:]
	n, err := preadRetry(own, probe, 0)
	switch {
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP):
		return -1, fmt.Sprintf("no direct reads of %d bytes: %s", Align, errorText(err)),
			unix.Close(own)
	case err == nil && n < Align:
		err = ErrTruncated
	}
	if err != nil {
		return -1, "", errors.Join(fmt.Errorf("read the first %d bytes: %w", Align, err),
			unix.Close(own))
	}
	return own, "", nil
}

// Descriptors returns the number of file descriptors that this process has open; 0 if it is not
// known.
func Descriptors() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(names) - 1 // not counting the descriptor of the directory
}

func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func preadRetry(fd int, buf []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(fd, buf, off)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
	}
}

// errorText returns an error with its name in manuals and its text: "EINVAL, invalid argument".
func errorText(err error) string {
	var no unix.Errno
	if errors.As(err, &no) && unix.ErrnoName(no) != "" {
		return unix.ErrnoName(no) + ", " + no.Error()
	}
	return err.Error()
}
