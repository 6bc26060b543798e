// Package products keeps, in a file of the user, how fast this machine's processor multiplies
// matrices of bfloat16 by each of its instruction sets, so that it is measured once, and all
// processes use the same: tiles of AMX sum in an order of their own.
package products

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"gdb/compute/kernel/bf16"
	"gdb/internal/files"
)

const fileName = "products.json"

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

// When is for measured.
func (e entry) When() time.Time { return e.Measured }

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
	return files.ReadRecords[entry](f.fs, f.Path())
}

// Keep adds what was measured to the file.
func (f *File) Keep(levels []string, rates []bf16.Rate) error {
	all, err := f.read()
	if err != nil {
		return err
	}
	all[name(levels)] = entry{time.Now().UTC().Truncate(time.Second), rates}
	return files.WriteRecords(f.fs, f.Path(), all)
}
