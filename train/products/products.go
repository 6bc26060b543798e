// Package products keeps, in a file of the user, how fast this machine's processor multiplies
// matrices of bfloat16 by each of its instruction sets, so that it is measured once, and all
// processes use the same: tiles of AMX sum in an order of their own.
package products

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"gdb/internal/atomicfile"
	"gdb/internal/smallfile"
	"gdb/train/kernel/bf16"
)

const (
	fileName  = "products.json"
	fileLimit = 1 << 20 // bytes
	// namesMax bounds the processors of the file, which several machines may share: the oldest give
	// way.
	namesMax = 64
)

// File is a bf16.Keeper.
type File struct {
	fs  vfs.FS
	dir string
}

// In returns the file of a directory, which need not be there yet.
func In(fs vfs.FS, dir string) *File { return &File{fs, dir} }

// Path is where the file is.
func (f *File) Path() string { return f.fs.PathJoin(f.dir, fileName) }

// entry is what was measured of a processor.
type entry struct {
	Measured time.Time   `json:"measured"`
	Rates    []bf16.Rate `json:"rates"`
}

// of says that an entry is one of these levels, the fastest first.
func (e *entry) of(levels []string) bool {
	var names []string
	for i, r := range e.Rates {
		if !(r.GFLOPS > 0) || math.IsInf(r.GFLOPS, 0) || i > 0 && r.GFLOPS > e.Rates[i-1].GFLOPS {
			return false
		}
		names = append(names, r.Level)
	}
	slices.Sort(names)
	return slices.Equal(names, slices.Sorted(slices.Values(levels)))
}

// name is what levels are kept under.
func name(levels []string) string {
	return processor() + ": " + strings.Join(levels, ", ")
}

// Kept returns what was measured of these levels on a processor of this kind; nil for nothing, or a
// file that cannot be read, which Keep tells about.
func (f *File) Kept(levels []string) []bf16.Rate {
	all, err := f.read()
	if e, ok := all[name(levels)]; ok && err == nil && e.of(levels) {
		return e.Rates
	}
	return nil
}

func (f *File) read() (map[string]entry, error) {
	all := map[string]entry{}
	b, err := smallfile.Read(f.fs, f.Path(), fileLimit)
	if oserror.IsNotExist(err) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w; delete it to have one made anew", f.Path(), err)
	}
	return all, nil
}

// Keep adds what was measured to the file. Of two processes that write at the same time one loses
// its entry, and measures again next time.
func (f *File) Keep(levels []string, rates []bf16.Rate) error {
	all, err := f.read()
	if err != nil {
		return err
	}
	all[name(levels)] = entry{time.Now().UTC().Truncate(time.Second), rates}
	for len(all) > namesMax {
		delete(all, slices.MinFunc(slices.Sorted(maps.Keys(all)), func(a, b string) int {
			return all[a].Measured.Compare(all[b].Measured)
		}))
	}
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return f.write(append(b, '\n'))
}

// write replaces the file. Until it is whole it has a name of its own, since another process may
// write one too.
func (f *File) write(b []byte) error {
	if err := f.fs.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", f.dir, err)
	}
	to, err := atomicfile.CreateAs(f.fs, f.Path(), fmt.Sprintf("%s.%d", f.Path(), os.Getpid()))
	if err != nil {
		return err
	}
	if _, err := to.Write(b); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", f.Path(), err), to.Abort())
	}
	return to.Commit()
}
