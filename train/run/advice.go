package run

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/runs"
)

// advised adds to an error of the disk what the user can do. Errors about damage say
// that themselves.
func advised(dir runs.Dir, err error) error {
	var (
		read *blockdev.ReadError
		what string
	)
	switch {
	case err == nil || errors.Is(err, layout.ErrCorrupt) || errors.Is(err, kv.ErrDamaged):
		return err
	case errors.Is(err, syscall.ENOSPC):
		what = "free space on the disk"
	case errors.As(err, &read), errors.Is(err, syscall.EIO), errors.Is(err, io.ErrUnexpectedEOF):
		what = "see to the disk"
	default:
		return err
	}
	if dir.Exists() {
		return fmt.Errorf("%w; %s, then go on with --resume %s", err, what, dir.Name())
	}
	return fmt.Errorf("%w; %s, then begin again", err, what)
}
