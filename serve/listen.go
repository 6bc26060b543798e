package serve

import (
	"errors"
	"fmt"
	"io"
	"net"

	"gdb/internal/files"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// socketMode lets nobody but the owner connect.
const socketMode = 0o600

// lockSuffix is what the name of a socket's lock file adds to the name of the socket.
const lockSuffix = ".lock"

// Listener is the socket of a server, together with the lock that keeps other servers from it.
type Listener struct {
	*net.UnixListener
	lock io.Closer
	path string
}

// Listen makes the socket of a server. It replaces a socket that a killed server left. It fails
// where a server answers, and where the path holds anything that is not a socket of this user. The
// lock is a file beside the socket. Closing the listener removes both.
func Listen(path string) (*Listener, error) {
	lock, err := files.Lock(vfs.Default, path+lockSuffix)
	for errors.Is(err, files.ErrLockRemoved) { // by a server that ended at this moment
		lock, err = files.Lock(vfs.Default, path+lockSuffix)
	}
	if errors.Is(err, files.ErrLockHeld) {
		return nil, errOther(path)
	}
	if err != nil {
		return nil, listenError(path, err)
	}
	l := &Listener{lock: lock, path: path}
	if err := clear(path); err != nil {
		return nil, errors.Join(err, l.unlock())
	}
	if l.UnixListener, err = listenPrivate(path); err != nil {
		return nil, errors.Join(listenError(path, err), l.unlock())
	}
	return l, nil
}

// Close removes the socket and its lock. Further calls return an error and do no harm.
func (l *Listener) Close() error {
	err := l.UnixListener.Close()
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return errors.Join(err, l.unlock())
}

// unlock removes the lock's file before it gives the lock back: a server that has opened the file
// by then finds that it is gone, and makes another. A file that is not empty was not made by a
// server, and stays.
func (l *Listener) unlock() error {
	var err error
	var there unix.Stat_t
	if unix.Lstat(l.path+lockSuffix, &there) == nil && there.Size == 0 {
		err = unix.Unlink(l.path + lockSuffix)
	}
	return errors.Join(err, l.lock.Close())
}

// clear removes the socket that a killed server left at path. The caller holds the lock.
func clear(path string) error {
	var there unix.Stat_t
	err := unix.Lstat(path, &there)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return listenError(path, err)
	case there.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return listenError(path, errors.New("it is there and no socket, so it stays: take "+
			"another path"))
	case int(there.Uid) != unix.Getuid():
		return listenError(path, errors.New("it is a socket of another user: take another path"))
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil { // connecting was only to see whether a server answers
		_ = c.Close() // it was only to see whether anybody is there
		return errOther(path)
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		err = unix.Unlink(path)
	}
	if err != nil {
		return listenError(path, err)
	}
	return nil
}

// errOther returns the error that another server has the socket.
func errOther(path string) error {
	return fmt.Errorf("serve: %s: another server is there: connect to it, or take another socket",
		path)
}

// listenPrivate makes the socket, which has its mode from the first moment on.
func listenPrivate(path string) (*net.UnixListener, error) {
	old := unix.Umask(0o777 &^ socketMode)
	defer unix.Umask(old)
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}

func listenError(path string, err error) error {
	return fmt.Errorf("serve: listen at %s: %w", path, err)
}
