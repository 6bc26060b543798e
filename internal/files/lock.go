package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// ErrLockHeld is wrapped if somebody else holds the lock.
var ErrLockHeld = errors.New("somebody else holds the lock")

// ErrLockRemoved is wrapped if the directory was removed while the lock was taken, because its last
// holder cleaned up. To take the lock, the caller makes the directory again.
var ErrLockRemoved = errors.New("the directory of the lock was removed")

// Lock takes the lock on the file at path, which it creates if needed; it does not wait. The caller
// closes the result to release the lock. The error wraps ErrLockHeld if somebody has the lock. A
// link in place of the file is refused.
func Lock(fs vfs.FS, path string) (io.Closer, error) {
	take := fs.Lock
	if vfs.Root(fs) == vfs.Default {
		take = lockOnDisk
	}
	lock, err := take(path)
	if err != nil {
		if isHeld(err) {
			err = ErrLockHeld
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if _, err := fs.Stat(path); err != nil {
		if oserror.IsNotExist(err) {
			err = ErrLockRemoved
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.Close())
	}
	return lock, nil
}

// lockOnDisk locks a file by flock, which also excludes other goroutines of this process. The
// record locks of Pebble's vfs belong to the process, and to the name by which it opened a file.
func lockOnDisk(path string) (io.Closer, error) {
	const flags = os.O_RDWR | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, flags, 0o644) //lint:os a vfs.FS cannot say which lock it takes
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = sameFile(f, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sameFile returns ErrLockRemoved if the file at path is no longer f: the previous holder may have
// removed it after it was opened here, and then nobody else would find this lock.
func sameFile(f *os.File, path string) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(opened, there) {
		return ErrLockRemoved
	}
	return err
}

// isHeld reports whether a lock failed because somebody holds it. Pebble's vfs has no error value
// for the case that this process does.
func isHeld(err error) bool {
	return errors.Is(err, unix.EWOULDBLOCK) ||
		strings.Contains(err.Error(), "lock held by current process")
}
