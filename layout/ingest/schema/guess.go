package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Guess finds out what the tables of a directory are, from their heads. The key of a table is
// the column id, or the one that is called as the table is, as user_id in users, or the first one
// where another table has it too, as sku in items and orders. Foreign keys are columns that are
// called as other tables are, or as such a first column, and are of the type of their keys.
func Guess(fs vfs.FS, dir string, opt *source.Options) (*Schema, error) {
	found, err := source.TablesIn(fs, dir)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, input.Wrong(dir, "", "there are no tables in it")
	}
	s := &Schema{}
	g := &guess{opener: source.NewOpener(fs, opt), keys: map[string]string{},
		shared: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		t, err := g.opener.Open(found[name], table.Hints{Known: []string{"id"}, Header: opt.Header})
		if err != nil {
			return nil, input.AsError(err)
		}
		g.tables = append(g.tables, t)
		s.Tables = append(s.Tables, g.describe(t, name, fs.PathBase(found[name])))
	}
	for i := range s.Tables {
		g.addShared(&s.Tables[i], g.tables[i], s.Tables)
	}
	for i := range s.Tables {
		g.addForeign(&s.Tables[i], s.Tables)
	}
	return s, nil
}

// guess is a guess about tables, parallel to those of a schema.
type guess struct {
	opener table.Opener
	tables []*table.Table
	keys   map[string]string // the type of the key of each table that has one
	shared map[string]bool   // the tables whose key is called as columns of other tables are
}

// describe finds key, time and types of a table.
func (g *guess) describe(t *table.Table, name, file string) Table {
	of := Table{Name: name, File: file, Types: map[string]string{}}
	var times []string
	for c := range t.Width {
		if t.List(c) || t.Kind(c) == table.Unread {
			continue
		}
		typ := table.ColumnType(t, c, g.opener.Missing)
		of.Types[t.Name(c)] = typ
		if typ == columnfile.Date || typ == columnfile.Timestamp || t.TimeForm(c) != kv.TimeNumber {
			times = append(times, t.Name(c))
		}
	}
	key := t.Named([]string{"id"})
	for c := 0; c < t.Width && key < 0; c++ {
		if t.Names != nil && source.NamesTable(t.Names[c], name) {
			key = c
		}
	}
	if key >= 0 && distinct(t.Sample, key) {
		of.Key, g.keys[name] = t.Name(key), of.Types[t.Name(key)]
		delete(of.Types, of.Key)
	}
	if at := t.Named(source.TimeNames); at >= 0 && t.Name(at) != of.Key {
		of.Time = t.Name(at)
	} else if len(times) == 1 {
		of.Time = times[0]
	}
	return of
}

// addShared makes the first column of a table without a key its key if its values differ, and
// another table has a column of that name and type, where some come more than once or which is not
// its key.
func (g *guess) addShared(of *Table, t *table.Table, tables []Table) {
	if of.Key != "" || t.Names == nil || t.Width < 2 || !distinct(t.Sample, 0) {
		return
	}
	name := t.Name(0)
	if typ := of.Types[name]; typ != columnfile.Int64 && typ != columnfile.String {
		return
	}
	for i := range tables {
		other := &tables[i]
		if other.Name == of.Name || other.Types[name] != of.Types[name] {
			continue
		}
		c, err := g.tables[i].Column("", name)
		if err == nil && (other.Key != "" || !distinct(g.tables[i].Sample, c)) {
			of.Key, g.keys[of.Name], g.shared[of.Name] = name, of.Types[name], true
			delete(of.Types, name)
			return
		}
	}
}

// distinct reports whether the values of a column are there and differ.
func distinct(rows [][]string, col int) bool {
	seen := map[string]bool{"": true}
	for _, r := range rows {
		if seen[r[col]] {
			return false
		}
		seen[r[col]] = true
	}
	return true
}

// addForeign finds the foreign keys of a table.
func (g *guess) addForeign(t *Table, tables []Table) {
	for _, column := range slices.Sorted(maps.Keys(t.Types)) {
		for _, other := range tables {
			named := source.NamesTable(column, other.Name) ||
				g.shared[other.Name] && column == other.Key
			if other.Key == "" || !named || t.Types[column] != g.keys[other.Name] {
				continue
			}
			if t.Foreign == nil {
				t.Foreign = map[string]string{}
			}
			t.Foreign[column] = other.Name
			break
		}
	}
	for column := range t.Foreign {
		delete(t.Types, column)
	}
	if len(t.Foreign) == 0 { // times are of edges
		t.Time = ""
	}
}

// Write writes a schema that Read reads.
func (s *Schema) Write(fs vfs.FS, file string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if err := files.WriteAtomic(fs, file, text, []byte("\n")); err != nil {
		return fmt.Errorf("ingest: write %s: %w", file, err)
	}
	return nil
}
