package serve

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// socketMode lets nobody but the owner connect.
const socketMode = 0o600

// Listen makes the socket of a server. One that is left of a server that was killed is replaced;
// one where a server answers is an error. The file goes when the listener is closed.
func Listen(path string) (*net.UnixListener, error) {
	at := &net.UnixAddr{Name: path, Net: "unix"}
	l, err := listenPrivate(at)
	if !errors.Is(err, unix.EADDRINUSE) {
		return l, listenError(path, err)
	}
	c, failed := net.DialUnix("unix", nil, at)
	if failed == nil {
		_ = c.Close() // it was only to see whether anybody is there
		return nil, fmt.Errorf("serve: %s: another server is there: connect to it, or take "+
			"another socket", path)
	}
	if !errors.Is(failed, unix.ECONNREFUSED) {
		return nil, listenError(path, failed)
	}
	if err := unix.Unlink(path); err != nil {
		return nil, listenError(path, err)
	}
	l, err = listenPrivate(at)
	return l, listenError(path, err)
}

// listenPrivate makes the socket with its mode from the first moment on.
func listenPrivate(at *net.UnixAddr) (*net.UnixListener, error) {
	old := unix.Umask(0o777 &^ socketMode)
	defer unix.Umask(old)
	return net.ListenUnix("unix", at)
}

func listenError(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("serve: listen at %s: %w", path, err)
}
