package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// KeyIndex leads from the integer ids of a type to the rows of its table.
type KeyIndex interface {
	// Rows replaces ids by rows. It returns the number of the first id that no row has, or -1.
	Rows(ids []uint64) int
}

// integerKeys reports whether the ids of the first rows of a table are integers below 2^63. Those
// of a table without a column of ids are the numbers of its rows.
func (n *nodeTable) integerKeys() bool {
	return n.id < 0 || !slices.ContainsFunc(n.Sample, func(r []string) bool {
		id, ok := input.ParseID([]byte(r[n.id]))
		return !ok || id > math.MaxInt64
	})
}

// IntegerKeys returns the types whose ids are integers by the first rows of their tables.
func (s *typedGraph) IntegerKeys() (types []int) {
	for i, t := range s.types {
		if t.table != nil && t.table.opened.integerKeys() {
			types = append(types, i)
		}
	}
	return types
}

// Keys streams the integer ids of a type in the order of its rows, input.NotKey in place of one
// that is none.
func (s *typedGraph) Keys(ctx context.Context, typ int, fn func(*IDChunk) error) error {
	n := s.types[typ].table.opened
	return input.AsError(n.each(ctx, nodeWants{keys: true}, func(r *nodeRows) error {
		return fn(&r.ids)
	}))
}

// UseKeys sets what leads from the ids of each type to rows, or nil for a type whose ids are text.
// From then on Nodes leaves out the types that have one, and ends of edges that are integers are
// rows of the tables of their types: of the types that have one, and the rows with foreign keys.
// After UseKeys(nil) all ids are text.
func (s *typedGraph) UseKeys(index []KeyIndex) {
	s.index = index
	for _, r := range s.relations {
		t := r.edges()
		t.srcKeys, t.dstKeys = s.keysOf(r.src), s.keysOf(r.dst)
		// Where rows may be left out, their numbers are found by their ids.
		t.numbered = t.key && index != nil && s.opt.SkipBad == 0
	}
}

// keysOf returns the index of a type, or nil.
func (s *typedGraph) keysOf(typ int) KeyIndex {
	if s.index == nil {
		return nil
	}
	return s.index[typ]
}

// endKind returns the kind that ends of edges are read as.
func endKind(keys KeyIndex, text input.Kind) input.Kind {
	if keys != nil {
		return input.Reference
	}
	return text
}

// end is a column of the ends of edges.
type end struct {
	field int
	typ   string
	keys  KeyIndex // nil: ids are text
	typed prefixer
}

// ids returns the rows of the ends in a batch, or their texts with the type before them. A null
// end is left as it is.
func (s *textGraph) ids(ctx context.Context, t *edgeTable, e *end, v *input.Values,
	at *Where) (rows []uint64, text [][]byte, err error) {
	if e.keys == nil {
		e.typed.apply(v.Texts)
		return nil, v.Texts, nil
	}
	rest := v.IDs
	for {
		i := e.keys.Rows(rest)
		if i >= 0 && rest[i] == input.NoKey {
			rest = rest[i+1:]
			continue
		}
		if i >= 0 {
			i += len(v.IDs) - len(rest)
			return nil, nil, s.noRow(ctx, t, e, v.IDs[i], at, i)
		}
		return v.IDs, nil, nil
	}
}

// noRow returns the error of an end that no row has.
func (s *textGraph) noRow(ctx context.Context, t *edgeTable, e *end, id uint64, at *Where,
	i int) error {
	text := strconv.FormatUint(id, 10)
	if id == input.NotKey {
		var err error
		if text, err = s.fieldAt(ctx, t.Table, e.field, at.File, at.Line(i)); err != nil {
			return err
		}
	}
	return ErrNoRow(at.Position(i), e.typ, text)
}

// ErrNoRow is the error of an edge that names a node without a row.
func ErrNoRow(where, typ, id string) error {
	return input.Wrong(where, fmt.Sprintf("add the row, or leave out --nodes %s=…: then the ids "+
		"in edges are the nodes", typ), "%s %s has no row in the table of %s", typ, id, typ)
}

// fieldAt returns a field of a row as text.
func (s *textGraph) fieldAt(ctx context.Context, t *table.Table, field int, file string,
	line int64) (text string, err error) {
	quiet := s.tables
	quiet.Bad = table.BadLines{Max: math.MaxInt64}
	spec := input.Spec{Columns: []input.Column{{Field: field, Kind: input.Text}}}
	err = quiet.Each(ctx, t, table.Skips, spec, func(b *input.Batch) error {
		for i, v := range b.Columns[0].Texts {
			if b.File == file && b.Line(i) == line {
				text = string(v)
				return errFound
			}
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return text, err
}
