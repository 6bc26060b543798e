//go:build !linux

package blockdev

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// hasDescriptors is false where the system calls of Linux are missing: every file is read by its
// own ReadAt, through the page cache.
const hasDescriptors = false

var errNotHere = fmt.Errorf("%w on this operating system, only on Linux", errors.ErrUnsupported)

func newURing(*device, int) (engine, string, error) { return nil, "", errNotHere }

func ringRefusal(err error) string { return "io_uring is " + err.Error() }

func mapFile(int, int64) ([]byte, error) { return nil, errNotHere }

func unmap([]byte) error { return errNotHere }

func pread(int, []byte, int64) (int, error) { return 0, errNotHere }

func closeDirect(int) error { return errNotHere }

func adviseRandom(int) error { return errNotHere }

// DropCache works only on Linux; here it returns an error.
func DropCache(vfs.File, int64, int64) error { return errNotHere }

// Descriptors returns 0: the number of open descriptors is not known here.
func Descriptors() int { return 0 }

func setDirect(vfs.File, bool) error { return errNotHere }

func openDirect(int, int64) (int, string, error) { return -1, "", errNotHere }
