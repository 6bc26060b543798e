package bf16

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"gdb/internal/files"
)

const fileName = "products.json"

// RatesFile is a bf16.Keeper.
type RatesFile struct {
	fs  vfs.FS
	dir string
}

// RatesIn returns the file of a directory, which need not be there yet.
func RatesIn(fs vfs.FS, dir string) *RatesFile { return &RatesFile{fs, dir} }

// Path returns where the file is.
func (f *RatesFile) Path() string { return f.fs.PathJoin(f.dir, fileName) }

// entry is what was measured of a processor.
type entry struct {
	Measured time.Time `json:"measured"`
	Rates    []Rate    `json:"rates"`
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

// name returns what levels are kept under.
func name(levels []string) string {
	return processor() + ": " + strings.Join(levels, ", ")
}

// Kept returns what was measured of these levels on a processor of this kind; nil for nothing, or a
// file that cannot be read, which Keep tells about.
func (f *RatesFile) Kept(levels []string) []Rate {
	all, err := f.read()
	if e, ok := all[name(levels)]; ok && err == nil && e.of(levels) {
		return e.Rates
	}
	return nil
}

func (f *RatesFile) read() (map[string]entry, error) {
	return files.ReadRecords[entry](f.fs, f.Path())
}

// Keep adds what was measured to the file.
func (f *RatesFile) Keep(levels []string, rates []Rate) error {
	all, err := f.read()
	if err != nil {
		return err
	}
	all[name(levels)] = entry{time.Now().UTC().Truncate(time.Second), rates}
	return files.WriteRecords(f.fs, f.Path(), all)
}
