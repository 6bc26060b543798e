// Package draft makes copies of stores that are changed and thrown away, to see what a store would
// be with more nodes.
package draft

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"gdb/internal/files"
	"gdb/kv"
	"gdb/kv/catalog"
	"gdb/layout"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Draft is a copy of a store, in a folder of the store's tmp. Its files are second names of those
// of the store, which are never written in place: so it takes next to no disk until it is changed,
// and no change of it is one of the store. Where the file system knows no second names it is a
// copy indeed.
type Draft struct {
	fs   vfs.FS
	dir  string
	lock io.Closer // held as long as the draft is used
}

// prefix begins the names of drafts in the store's tmp, and lockEnding ends those of the files
// beside them that are locked while they are used.
const prefix, lockEnding = "draft-", ".lock"

// New copies the last snapshot of the store in dir, and one of its runs. The caller calls Close.
func New(ctx context.Context, fs vfs.FS, dir, run string) (d *Draft, err error) {
	fs = files.Guard(fs, dir)
	tmp := fs.PathJoin(dir, "tmp")
	err = fs.MkdirAll(tmp, 0o755)
	if err == nil {
		err = removeDead(fs, tmp)
	}
	if err != nil {
		return nil, cannotWrite(tmp, err)
	}
	var token [6]byte
	_, _ = rand.Read(token[:]) // documented never to fail
	d = &Draft{fs: fs, dir: fs.PathJoin(tmp, prefix+hex.EncodeToString(token[:]))}
	if d.lock, err = files.Lock(fs, d.dir+lockEnding); err != nil {
		return nil, cannotWrite(tmp, err)
	}
	keep, err := layout.KeepAll(fs, dir)
	if err == nil {
		err = errors.Join(d.link(ctx, dir, run), keep.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("draft: copy %s: %w", dir, err), d.Close())
	}
	return d, nil
}

func cannotWrite(tmp string, err error) error {
	return fmt.Errorf("draft: new nodes are put into a copy of the store in %s, which must be "+
		"writable: %w", tmp, err)
}

// Dir returns the folder of the draft: a store.
func (d *Draft) Dir() string { return d.dir }

// Close removes the draft.
func (d *Draft) Close() error { return remove(d.fs, d.dir, d.lock) }

func remove(fs vfs.FS, dir string, lock io.Closer) error {
	err := fs.RemoveAll(dir)
	if oserror.IsNotExist(err) {
		err = nil
	}
	return errors.Join(err, fs.Remove(dir+lockEnding), lock.Close())
}

// removeDead removes the drafts in a folder that nobody uses, as their locks tell.
func removeDead(fs vfs.FS, tmp string) error {
	names, err := fs.List(tmp)
	if err != nil {
		return err
	}
	for _, name := range names {
		base, isLock := strings.CutSuffix(name, lockEnding)
		if !isLock || !strings.HasPrefix(name, prefix) {
			continue
		}
		lock, err := files.Lock(fs, fs.PathJoin(tmp, name))
		if errors.Is(err, files.ErrLockHeld) || errors.Is(err, files.ErrLockRemoved) {
			continue
		}
		if err == nil {
			err = remove(fs, fs.PathJoin(tmp, base), lock)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link gives the files of a store second names in the draft. The catalog comes first: small commits
// that are made meanwhile are of later snapshots.
func (d *Draft) link(ctx context.Context, dir, run string) error {
	m, err := catalog.New(d.fs, d.fs.PathJoin(dir, layout.CatalogName)).LinkTo(ctx,
		d.fs.PathJoin(d.dir, layout.CatalogName))
	if err != nil {
		return err
	}
	for _, folder := range m.Folders() {
		if folder == "" {
			err = d.own(dir, m)
		} else {
			err = d.tree(d.at(dir, folder), d.at(d.dir, folder))
		}
		if err != nil {
			return err
		}
	}
	if err := d.commits(dir, m.Snapshot); err != nil {
		return err
	}
	path := "runs/" + run
	return d.tree(d.at(dir, path), d.at(d.dir, path))
}

// at returns the path of a file of a store, given with slashes.
func (d *Draft) at(dir, path string) string {
	return d.fs.PathJoin(append([]string{dir}, strings.Split(path, "/")...)...)
}

// own links the files of a base that has no folder of its own.
func (d *Draft) own(dir string, m *kv.Meta) error {
	for _, f := range m.Files {
		if err := d.file(d.at(dir, f.Path), d.at(d.dir, f.Path)); err != nil {
			return err
		}
	}
	return nil
}

// commits links the files of small commits after a snapshot.
func (d *Draft) commits(dir string, snapshot uint64) error {
	levels := d.at(dir, layout.LevelsDir)
	names, err := d.fs.List(levels)
	if err != nil && !oserror.IsNotExist(err) {
		return err
	}
	for _, name := range names {
		if number, is := layout.CommitNumber(name); !is || number <= snapshot {
			continue
		}
		err := d.file(d.fs.PathJoin(levels, name), d.at(d.dir, layout.LevelsDir+"/"+name))
		if err != nil {
			return err
		}
	}
	return nil
}

// tree links the files of a folder and its folders, but for locks.
func (d *Draft) tree(from, to string) error {
	names, err := d.fs.List(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == "LOCK" || strings.HasSuffix(name, lockEnding) {
			continue
		}
		a, b := d.fs.PathJoin(from, name), d.fs.PathJoin(to, name)
		info, err := d.fs.Stat(a)
		if err == nil && info.IsDir() {
			err = d.tree(a, b)
		} else if err == nil {
			err = d.file(a, b)
		}
		// A training removes its old checkpoints, and an evaluation what it has computed.
		if err != nil && !oserror.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// file links a file, and makes the folder of its second name.
func (d *Draft) file(from, to string) error {
	if err := d.fs.MkdirAll(d.fs.PathDir(to), 0o755); err != nil {
		return fmt.Errorf("make %s: %w", d.fs.PathDir(to), err)
	}
	if err := vfs.LinkOrCopy(d.fs, from, to); err != nil {
		return fmt.Errorf("link %s: %w", from, err)
	}
	return nil
}
