package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"syscall"
	"time"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

var errNotExist = iofs.ErrNotExist

// makeIOFile writes size bytes that do not compress, with a stamp every ioStampUnit bytes, and
// syncs them. A file without real bytes would be answered by the file system alone.
func makeIOFile(ctx context.Context, path string, size int64) (err error) {
	f, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size &^= ioStampUnit - 1
	rng := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 1<<20)
	for off := int64(0); off < size && ctx.Err() == nil; {
		n := min(int64(len(buf)), size-off)
		for i := 0; i < int(n); i += 8 {
			v := rng.Uint64()
			if i%ioStampUnit == 0 {
				v = stamp(off + int64(i))
			}
			binary.LittleEndian.PutUint64(buf[i:], v)
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		off += n
	}
	return errors.Join(ctx.Err(), f.Sync())
}

// dropCache takes the file's pages out of the page cache, so that reads through it start cold.
func dropCache(path string) (err error) {
	f, err := vfs.Default.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Fsync(int(f.Fd())); err != nil { // what is not written cannot be dropped
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := blockdev.DropCache(f, 0, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// processCPU is the user and system time of this process, all its threads together.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
