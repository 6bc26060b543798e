package table

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdb/layout/ingest/columnar"
	"gdb/layout/ingest/input"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sampleCells bounds the sample of a table of many columns, and sampleLeast is how many rows it has
// at least.
const (
	sampleCells = 1 << 18
	sampleLeast = 20
)

// Files returns the files of a table of columns: the file itself, or the files of a directory. It
// returns nil if the file is text.
func Files(fs vfs.FS, file string) (files []string, err error) {
	stat, err := fs.Stat(file)
	if err != nil {
		return nil, input.Missing(file, err)
	}
	if !stat.IsDir() {
		if columnar.Is(file) {
			return []string{file}, nil
		}
		return nil, nil
	}
	names, err := fs.List(file)
	if err != nil {
		return nil, fmt.Errorf("ingest: list %s: %w", file, err)
	}
	slices.Sort(names)
	for _, n := range names {
		part := fs.PathJoin(file, n)
		stat, err := fs.Stat(part)
		switch {
		case err != nil:
			return nil, input.Missing(part, err)
		case strings.HasPrefix(n, "_"), strings.HasPrefix(n, "."): // the writer's
		case stat.IsDir():
			return nil, input.Wrong(part, "give directories of files alone: a column that is "+
				"only in the names of directories is not read", "a directory within a table of %s",
				file)
		case columnar.Is(n):
			files = append(files, part)
		}
	}
	if len(files) == 0 {
		return nil, input.Wrong(file, "give a file",
			"is a directory, and there is no Parquet or Arrow file in it")
	}
	return files, nil
}

// foreignName is how files are called of formats that graphs are often in, and that are not read.
var foreignName = regexp.MustCompile(
	`\.(pt|pth|bin|dgl|pkl|pickle|mat|h5|hdf5|hdf|zip|7z|xz|tar|graphml|gexf|gml|dot|gv|` +
		`json|jsonl|nt|ttl|rdf|xml|net|mtx|xlsx|sqlite|db)(\.gz|\.bz2|\.zst)?$`)

// Foreign returns an error if one of some files, none of which holds edges, is of such a format, or
// a directory of a table that is divided by a column.
func Foreign(fs vfs.FS, files []string) error {
	for _, f := range files {
		if column, _, divided := strings.Cut(fs.PathBase(f), "="); divided {
			return input.Wrong(f, "write it without partition_cols: the column is only in the "+
				"names of directories", "the table is divided by its column %q", column)
		}
		if foreignName.MatchString(fs.PathBase(f)) {
			if _, _, err := Head(fs, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// openColumnar looks at a table of columns.
func (s *Opener) openColumnar(file string, files []string) (t *Table, err error) {
	t = &Table{Path: file, files: files}
	for i, part := range files {
		f, err := columnar.Open(s.FS, part, s.Memory/2)
		if err != nil {
			return nil, input.Missing(part, err)
		}
		if i == 0 {
			err = t.describe(f)
		} else if !slices.Equal(f.Names(), t.Names) {
			err = input.Wrong(part, "the files of a directory have the same columns; tables "+
				"of a database come in by --schema, which --schema-out writes",
				"its columns are not those of %s", files[0])
		}
		t.Lines += uint64(f.Rows())
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		stat, err := s.FS.Stat(part)
		if err != nil {
			return nil, fmt.Errorf("ingest: %w", err)
		}
		s.Use(part, stat.Size())
	}
	if t.Lines == 0 {
		return nil, input.Wrong(file, "", "there are no rows in it")
	}
	return t, nil
}

// List reports whether the values of a column are lists.
func (t *Table) List(col int) bool { return t.lists != nil && t.lists[col] }

// Columnar reports whether the table is stored by column.
func (t *Table) Columnar() bool { return t.dims != nil }

// describe takes names and a sample from the first file.
func (t *Table) describe(f *columnar.File) (err error) {
	t.Names, t.lists = f.Names(), f.Lists()
	t.Width = len(t.Names)
	for _, name := range f.Index() {
		if c := slices.Index(t.Names, name); c >= 0 {
			t.Index = append(t.Index, c)
		}
	}
	if t.Width == 0 {
		return input.Wrong(t.Path, "", "there are no columns in it")
	}
	t.Sample, err = f.Head(min(sampleRows, max(sampleLeast, sampleCells/t.Width)))
	if err != nil {
		return err
	}
	for c := range t.Width {
		t.times = append(t.times, f.TimeForm(c))
		t.kinds = append(t.kinds, f.Kind(c))
	}
	t.dims = make([]int, t.Width)
	for c, list := range t.lists {
		t.dims[c] = 1
		for _, row := range t.Sample { // the first list that is not empty
			if n, err := strconv.Atoi(strings.Trim(row[c], "[]")); list && err == nil && n > 0 {
				t.dims[c] = n
				break
			}
		}
	}
	return nil
}

// columnReader closes the file with the reader of it.
type columnReader struct {
	*columnar.Reader
	file *columnar.File
}

// Close closes both.
func (r *columnReader) Close() error { return errors.Join(r.Reader.Close(), r.file.Close()) }

func openColumns(s *Opener, t *Table, file string, spec input.Spec) (batches, error) {
	f, err := columnar.Open(s.FS, file, s.Memory/2)
	if err != nil {
		return nil, err
	}
	columns := slices.Clone(spec.Vector)
	for _, c := range spec.Columns {
		columns = append(columns, c.Field)
	}
	var dims []int
	for _, field := range spec.Vector {
		dims = append(dims, t.dims[field])
	}
	if err := f.CheckMemory(columns); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r, err := columnar.Read(f, spec, dims)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &columnReader{r, f}, nil
}

// Glob expands a pattern whose last part has *, ? or [.
func Glob(fs vfs.FS, pattern string) ([]string, error) {
	if !strings.ContainsAny(fs.PathBase(pattern), "*?[") {
		return []string{pattern}, nil
	}
	if _, err := fs.Stat(pattern); err == nil {
		return []string{pattern}, nil
	}
	dir := fs.PathDir(pattern)
	names, err := fs.List(dir)
	if err != nil {
		return nil, input.Missing(dir, fmt.Errorf("ingest: list %s: %w", dir, err))
	}
	slices.Sort(names)
	var found []string
	for _, n := range names {
		ok, err := path.Match(fs.PathBase(pattern), n)
		if err != nil {
			return nil, input.Usage("pattern %s: %w", pattern, err)
		}
		if ok {
			found = append(found, fs.PathJoin(dir, n))
		}
	}
	if len(found) == 0 {
		return nil, input.Wrong(pattern, "", "no file matches")
	}
	return found, nil
}
