// Package schema reads the files that say what a directory of tables is, and guesses what they
// would say: keys, foreign keys, times and types. It turns them into options of package source.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gdb/internal/message"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FileName is what a schema is called in the directory that it is of.
const FileName = "schema.json"

// Schema says what the tables of a directory are: a row is a node of the type that its table is
// called, and a foreign key that is not null an edge to the node that it names. Where all nodes are
// of one kind there is one table, without a name, and one of edges.
type Schema struct {
	Tables []Table `json:"tables"`
	// Edges are tables with a row for each edge.
	Edges []Edges `json:"edges,omitempty"`
	// Flags are flags of ingest that hold unless they are given: of FlagNames.
	Flags map[string]string `json:"flags,omitempty"`
	path  string
}

// FlagNames are the flags that a schema may have: those that say what columns are read as.
var FlagNames = []string{"allow-nan", "feature-cols", "feature-dtype", "label-col", "label-sep",
	"normalize", "reverse", "split-col"}

// Table is a table. All but its name may be left out.
type Table struct {
	Name string `json:"name"`
	// File is its file, or directory of files, in the directory of the schema; "" is the one that
	// has its name before an ending.
	File string `json:"file,omitempty"`
	Key  string `json:"key,omitempty"`  // the primary key; "": rows are numbered from 0
	Time string `json:"time,omitempty"` // when a row came about: the time of its edges
	// Foreign are columns and the tables whose keys they have.
	Foreign map[string]string `json:"foreign,omitempty"`
	// Types are types of columns, of table.ColumnTypes; others are found.
	Types map[string]string `json:"types,omitempty"`
}

// Edges is a table of the edges of a relation, whose name, and the tables of its ends, are "" where
// all nodes are of one kind. Type is "" if they have none, and the columns are "none" then, too.
type Edges struct {
	Name string `json:"name,omitempty"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	File string `json:"file"`
	source.EdgeColumns
	// Types are types of columns, as of Table.
	Types map[string]string `json:"types,omitempty"`
}

// Read reads a file of a schema: JSON. Errors about it are input.Errors.
func Read(fs vfs.FS, file string) (s *Schema, err error) {
	f, err := fs.Open(file)
	if err != nil {
		return nil, input.Missing(file, err)
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("ingest: read %s: %w", file, err)
	}
	s = &Schema{path: file}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		where, syntax, typed := file, &json.SyntaxError{}, &json.UnmarshalTypeError{}
		if errors.As(err, &syntax) || errors.As(err, &typed) {
			before := text[:min(max(syntax.Offset, typed.Offset), int64(len(text)))]
			where += fmt.Sprintf(" line %d", 1+bytes.Count(before, []byte("\n")))
		}
		return nil, input.Wrong(where, message.Program+
			" ingest DIR --schema-out FILE writes one to begin with", "it is no schema: %s",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return s, s.check()
}

// tableName matches names of types.
var tableName = regexp.MustCompile(`^[\w-]+$`)

// find returns a table by its name, or nil.
func (s *Schema) find(name string) *Table {
	at := slices.IndexFunc(s.Tables, func(t Table) bool { return t.Name == name })
	if at < 0 {
		return nil
	}
	return &s.Tables[at]
}

// check finds what is wrong with a schema itself.
func (s *Schema) check() error {
	if len(s.Tables) == 0 {
		return input.Wrong(s.path, "", "there are no tables in it")
	}
	var names []string
	for _, t := range s.Tables {
		switch {
		case t.Name == "" && len(s.Tables) == 1 && len(s.Edges) == 1 && len(t.Foreign) == 0:
		case !tableName.MatchString(t.Name):
			return input.Wrong(s.path, "", "%q cannot be the name of a table: letters, digits, _ "+
				"and - can", t.Name)
		case slices.Contains(names, t.Name):
			return input.Wrong(s.path, "", "the table %s is there twice", t.Name)
		}
		names = append(names, t.Name)
	}
	if err := s.checkEdges(names); err != nil {
		return err
	}
	for _, t := range s.Tables {
		if t.Time != "" && len(t.Foreign) == 0 {
			return input.Wrong(s.path+", table "+t.Name, "leave it out: the column is stored, "+
				"and train --time can read it", "the time %s would be given to a row's edges, "+
				"and the table has no foreign key", t.Time)
		}
		for _, column := range slices.Sorted(maps.Keys(t.Foreign)) {
			where, of := s.path+", table "+t.Name, s.find(t.Foreign[column])
			switch {
			case of == nil:
				do := "the tables are " + table.Few(names)
				if near := message.Nearest(t.Foreign[column], names); near != "" {
					do = "did you mean " + near + "?"
				}
				return input.Wrong(where, do, "the foreign key %s is of table %s, which is not "+
					"there", column, t.Foreign[column])
			case of.Key == "":
				return input.Wrong(where, "say which column is its key", "the foreign key %s is "+
					"of table %s, which has no key", column, of.Name)
			}
		}
		for _, column := range slices.Sorted(maps.Keys(t.Types)) {
			if !slices.Contains(table.ColumnTypes, t.Types[column]) {
				return input.Wrong(s.path+", table "+t.Name, "", "the type of %s is %s, and not "+
					"one of %v", column, t.Types[column], table.ColumnTypes)
			}
		}
	}
	return nil
}

// checkEdges finds what is wrong with tables of edges, and with flags.
func (s *Schema) checkEdges(names []string) error {
	for i, e := range s.Edges {
		where := fmt.Sprintf("%s, edges %d", s.path, i+1)
		for _, end := range []string{e.From, e.To} {
			if s.find(end) == nil {
				return input.Wrong(where, "the tables are "+table.Few(names),
					"they join the table %q, which is not there", end)
			}
		}
		if e.File == "" || (e.Name == "") != (e.From == "") {
			return input.Wrong(where, "", "they need a file, and a name if tables have one")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Flags)) {
		if !slices.Contains(FlagNames, name) {
			return input.Wrong(s.path, "give it to the command", "its flag %s is none of %v", name,
				FlagNames)
		}
	}
	return nil
}

// Apply puts the tables of a schema, which are in a directory, into opt.
func (s *Schema) Apply(fs vfs.FS, dir string, opt *source.Options) error {
	files, err := source.TablesIn(fs, dir)
	if err != nil {
		return err
	}
	opt.Schema = s.path
	var types []string
	for _, t := range s.Tables {
		file := fs.PathJoin(dir, t.File)
		if t.File == "" {
			if file = files[t.Name]; file == "" {
				return input.Wrong(s.path+", table "+t.Name, `say which it is: "file": "…"`,
					"%s has no file that is called so, with an ending of tables", dir)
			}
		}
		if t.Name == "" {
			opt.Nodes, opt.IDCol = file, t.Key
			continue
		}
		opt.NodeTables = append(opt.NodeTables, source.NodeTable{Type: t.Name, File: file,
			Key: cmp.Or(t.Key, source.NoColumn)})
		for _, column := range slices.Sorted(maps.Keys(t.Foreign)) {
			opt.Relations = append(opt.Relations, source.Relation{Src: t.Name, Name: column,
				Dst: t.Foreign[column], File: file, Key: column,
				Time: cmp.Or(t.Time, source.NoColumn)})
		}
		types = append(types, typeWords(t.Name, t.Types)...)
	}
	for _, e := range s.Edges {
		types = append(types, typeWords(cmp.Or(e.Name, "edges"), e.Types)...)
		file, columns := fs.PathJoin(dir, e.File), e.EdgeColumns
		if e.Name == "" {
			opt.Edges, opt.SrcCol, opt.DstCol = file, columns.Source, columns.Target
			opt.RelCol, opt.WeightCol, opt.TimeCol = columns.Type, columns.Weight, columns.Time
			continue
		}
		opt.Relations = append(opt.Relations, source.Relation{Src: e.From, Name: e.Name, Dst: e.To,
			File: file, Columns: &columns})
	}
	if opt.ColumnTypes != "" {
		types = append(types, opt.ColumnTypes)
	}
	opt.ColumnTypes = strings.Join(types, ",")
	return nil
}

// typeWords returns types of columns of a table as --column-types has them.
func typeWords(of string, types map[string]string) (words []string) {
	for _, column := range slices.Sorted(maps.Keys(types)) {
		word := of + source.ColumnSep + column + "=" + types[column]
		if strings.ContainsAny(word, `",`) {
			word = `"` + strings.ReplaceAll(word, `"`, `""`) + `"`
		}
		words = append(words, word)
	}
	return words
}
