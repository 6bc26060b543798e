package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"gdb/internal/files"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	lockName = "LOCK"

	// lockPollMax bounds the pause between two attempts to take the lock.
	lockPollMax = 50 * time.Millisecond

	// digestOpenBytes bounds the bytes that every opening reads to verify the files, the smallest
	// first. Larger files hold large sets, and are verified when a set is read.
	digestOpenBytes = 8 << 20

	// tidyEvery is the number of transactions after which one merges the files that they made.
	tidyEvery = 8

	cacheBytes    = 1 << 20
	memtableBytes = 4 << 20
)

// turnLock is the directory lock, and the turn of the transaction that has it.
type turnLock struct {
	io.Closer
	turn chan struct{}
}

// Close gives both back.
func (l turnLock) Close() error {
	err := l.Closer.Close()
	<-l.turn
	return err
}

// lock takes the directory lock. It waits for the transactions of this catalog, however many there
// are, and up to the catalog's patience for those of other processes.
func (c *Catalog) lock(ctx context.Context) (io.Closer, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("kv: lock %s: %w", c.dir, context.Cause(ctx))
	}
	l, err := c.lockDir(ctx)
	if err != nil {
		<-c.turn
		return nil, err
	}
	return turnLock{l, c.turn}, nil
}

// lockDir takes the directory lock, waiting up to the catalog's patience.
func (c *Catalog) lockDir(ctx context.Context) (io.Closer, error) {
	path, start := c.fs.PathJoin(c.dir, lockName), time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, lockPollMax) {
		l, err := files.Lock(c.fs, path)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, files.ErrLockHeld) {
			return nil, fmt.Errorf("kv: %w", err)
		}
		if time.Since(start) >= c.patience {
			return nil, fmt.Errorf("kv: %s: %w: another gdb has held %s for %v; try again when "+
				"it is done", c.dir, kv.ErrBusy, path, c.patience)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("kv: lock %s: %w", path, context.Cause(ctx))
		case <-timer.C:
		}
	}
}

// options returns the options of Pebble. A database lives for one transaction only, so it has
// nothing to cache, nothing to do in the background and nothing to log.
func options(fs vfs.FS, cache *pebble.Cache) *pebble.Options {
	return &pebble.Options{
		FS:     fs,
		Cache:  cache,
		Logger: silent{},
		// The default ends the process when it meets damage; the error is also returned.
		EventListener: &pebble.EventListener{
			DataCorruption: func(pebble.DataCorruptionInfo) {},
		},
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                memtableBytes,
		MaxOpenFiles:                64,
		DisableWAL:                  true, // a transaction ends with a flush and a seal
		DisableAutomaticCompactions: true,
		DisableTableStats:           true,
		L0StopWritesThreshold:       1 << 20, // nothing would end the wait
	}
}

// silent is Pebble's logger. Fatalf is called when the database contradicts itself, and must not
// return.
type silent struct{}

// Infof drops a note.
func (silent) Infof(string, ...any) {}

// Errorf drops an error, which Pebble also returns.
func (silent) Errorf(string, ...any) {}

// Fatalf panics with a fatal.
func (silent) Fatalf(format string, args ...any) {
	panic(fatal(fmt.Sprintf(format, args...)))
}

// fatal is the value that Fatalf panics with; run turns it into an error.
type fatal string

// run opens the database on fs, calls do and closes it.
func (c *Catalog) run(fs vfs.FS, readOnly, create bool, do func(*pebble.DB) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fatal)
			if !ok {
				panic(r)
			}
			err = kv.DamagedFile(c.rel(""), "%s", string(f))
		}
	}()
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	opt := options(fs, cache)
	opt.ReadOnly, opt.ErrorIfNotExists, opt.ErrorIfExists = readOnly, !create, create
	db, err := pebble.Open(c.dir, opt)
	if err != nil {
		return c.dbError("open", err)
	}
	err = do(db)
	if closing := db.Close(); closing != nil {
		err = errors.Join(err, c.dbError("close", closing))
	}
	return err
}

// dbError wraps an error of Pebble, and marks it as damage if it is about damage.
func (c *Catalog) dbError(op string, err error) error {
	var damage *kv.DamageError
	if errors.As(err, &damage) {
		return damage // an error about a file, which the stage met
	}
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if cut || pebble.IsCorruptionError(err) || errors.Is(err, pebble.ErrDBDoesNotExist) {
		return kv.DamagedFile(c.rel(""), "%s: %v", op, err)
	}
	return fmt.Errorf("kv: %s %s: %w", op, c.dir, err)
}

// view runs do on the sealed state, and changes nothing. On a file system that cannot be written,
// such as a shared one, it takes no lock, and calls do again if the state has changed meanwhile.
func (c *Catalog) view(ctx context.Context, do func(r reader) error) error {
	return c.sealed(ctx, func(s *seal) error { return c.read(ctx, s, do) })
}

// sealed calls do with the seal. It holds the lock meanwhile, unless the lock cannot be taken.
func (c *Catalog) sealed(ctx context.Context, do func(s *seal) error) error {
	// The seal is read before the lock is taken: a directory that is no store must not get a lock
	// file.
	s, err := c.readSeal()
	if err != nil {
		return err
	}
	l, err := c.lock(ctx)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission) {
		return c.unlocked(ctx, s, do) // nothing can be written here
	}
	if err != nil {
		return err
	}
	s, err = c.readSeal()
	if err == nil {
		err = do(s)
	}
	return errors.Join(err, l.Close())
}

// unlocked calls do again and again until the seal is the same before and after it. Sealed files
// never change, but a process that may write can remove old ones in a transaction.
func (c *Catalog) unlocked(ctx context.Context, s *seal, do func(s *seal) error) error {
	for {
		err := do(s)
		again, err2 := c.readSeal()
		if err2 != nil {
			return err2
		}
		if again.generation == s.generation || ctx.Err() != nil {
			return err
		}
		s = again
	}
}

// read runs do on the state that s seals. The caller holds the lock, or notices a change as
// unlocked does.
func (c *Catalog) read(ctx context.Context, s *seal, do func(r reader) error) error {
	st := newStage(c, s)
	if err := st.verify(ctx, c.opening); err != nil {
		return err
	}
	return c.run(st, true, false, func(db *pebble.DB) error { return do(reader{c, db, s}) })
}

// update runs do as one transaction: after it either all or nothing has happened.
func (c *Catalog) update(ctx context.Context, do func(w writer) error) error {
	if _, err := c.readSeal(); err != nil {
		return err
	}
	l, err := c.lock(ctx)
	if err != nil {
		return err
	}
	s, err := c.readSeal()
	if err == nil {
		err = c.transact(ctx, s, do)
	}
	return errors.Join(err, l.Close())
}

// transact runs do on the state that old seals, and seals the new state. The caller holds the lock.
func (c *Catalog) transact(ctx context.Context, old *seal, do func(w writer) error) error {
	st := newStage(c, old)
	if err := st.verify(ctx, c.opening); err != nil {
		return err
	}
	err := c.run(st, false, old.generation == 0, func(db *pebble.DB) error {
		w := writer{reader{c, db, old}, ctx}
		if err := do(w); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		return w.tidy()
	})
	sealed, failed := st.finish()
	// An error of the stage comes first: others may only follow from it.
	if err = errors.Join(failed, err); err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = files.SyncDir(c.fs, c.dir)
	}
	if err != nil {
		st.discard()
		return err
	}
	new := &seal{uuid: old.uuid, generation: old.generation + 1, files: sealed}
	if err := c.writeSeal(new); err != nil {
		return err
	}
	c.sweep(new)
	return nil
}

// sweep removes files that the seal does not list. It ignores errors: such files are never read,
// and the next transaction tries again.
func (c *Catalog) sweep(s *seal) {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return
	}
	for _, name := range names {
		_, sealed := s.find(name)
		if !sealed && name != sealName && name != lockName {
			_ = c.fs.Remove(c.fs.PathJoin(c.dir, name))
		}
	}
}

// rel returns the path of a catalog file relative to the store.
func (c *Catalog) rel(name string) string {
	base := c.fs.PathBase(c.dir)
	if name == "" {
		return base
	}
	return base + "/" + name
}
