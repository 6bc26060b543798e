package edgetable

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/topology"
)

// levels are the tables of base and levels of a relation as one: the rows of the base come first,
// and then those of each level that has a table, the oldest first.
type levels struct {
	origins  *topology.Origins
	relation uint16
	parts    []*Table // that of the base, and then by level; nil for one without
	first    []uint64 // row of each part
}

// openLevels opens the tables of base and levels.
func openLevels(ctx context.Context, s *layout.Store, dev blockdev.Device, relation int,
	budget *mem.Budget) (t *Table, err error) {
	l := &levels{relation: uint16(relation)}
	t = &Table{levels: l}
	defer func() {
		if err != nil {
			t, err = nil, errors.Join(err, l.close())
		}
	}()
	stores := []*layout.Store{s.Base()}
	for _, of := range s.Lists() {
		stores = append(stores, of.Store)
	}
	row := uint64(0)
	for i, of := range stores {
		var part *Table
		if i == 0 || of.Meta().EdgeTable(relation) != nil {
			if part, err = Open(ctx, of, dev, relation, budget); err != nil {
				return nil, err
			}
		}
		l.parts, l.first = append(l.parts, part), append(l.first, row)
		if part != nil {
			row += part.meta.Rows
		}
	}
	t.meta, t.of = l.parts[0].meta, l.parts[0].of
	l.origins, err = topology.OpenOrigins(ctx, s, dev, budget)
	return t, err
}

// rows finds the rows of entries of the merged lists.
func (l *levels) rows(ctx context.Context, entries []Entry, rows []uint64) ([]uint64, error) {
	rows = rows[:0]
	var inBase []Entry
	var at []int
	for i, e := range entries {
		o, err := l.origins.Of(e.Node, l.relation, e.Place)
		if err != nil {
			return nil, err
		}
		if o.Level < 0 {
			inBase, at = append(inBase, Entry{e.Node, uint32(o.Row)}), append(at, i)
			rows = append(rows, 0)
			continue
		}
		if l.parts[1+o.Level] == nil {
			return nil, fmt.Errorf("layout: level %d has edges of relation %d and no table of them",
				o.Level, l.relation)
		}
		rows = append(rows, l.first[1+o.Level]+o.Row)
	}
	if err := l.forward(ctx, rows, at); err != nil {
		return nil, err
	}
	own, err := l.parts[0].Rows(ctx, inBase, nil)
	for i, row := range own {
		rows[at[i]] = row
	}
	return rows, err
}

// forward turns numbers of entries of a reverse relation in levels into rows; skip are the places
// of entries of the base, ascending.
func (l *levels) forward(ctx context.Context, rows []uint64, skip []int) error {
	if l.parts[0].back == nil {
		return nil
	}
	some, places := []uint64(nil), []int(nil)
	for i, row := range rows {
		if len(skip) > 0 && skip[0] == i {
			skip = skip[1:]
			continue
		}
		some, places = append(some, row), append(places, i)
	}
	return l.byPart(some, func(part int, of []uint64, at []int) error {
		var v columnfile.Values
		if err := l.parts[part].forward(ctx, of, &v); err != nil {
			return err
		}
		for i, row := range of {
			rows[places[at[i]]] = l.first[part] + row
		}
		return nil
	})
}

// byPart calls fn with the rows of each part, by their numbers there, and with their places.
func (l *levels) byPart(rows []uint64, fn func(part int, of []uint64, at []int) error) error {
	of, at := make([][]uint64, len(l.parts)), make([][]int, len(l.parts))
	for i, row := range rows {
		part := len(l.parts) - 1
		for l.first[part] > row || l.parts[part] == nil {
			part--
		}
		of[part], at[part] = append(of[part], row-l.first[part]), append(at[part], i)
	}
	for part := range of {
		if len(of[part]) == 0 {
			continue
		}
		if err := fn(part, of[part], at[part]); err != nil {
			return err
		}
	}
	return nil
}

// gather sets out to the values of a column of rows of all parts.
func (l *levels) gather(ctx context.Context, rows []uint64, column int,
	out *columnfile.Values) error {
	var all columnfile.Values
	place := make([]int, len(rows)) // of each row in all
	err := l.byPart(rows, func(part int, of []uint64, at []int) error {
		var v columnfile.Values
		if err := l.parts[part].Gather(ctx, of, column, &v); err != nil {
			return err
		}
		for i, p := range at {
			place[p] = all.Rows + i
		}
		all.Append(&v, 0, v.Rows)
		return nil
	})
	if err != nil {
		return err
	}
	out.Reset()
	for _, at := range place {
		out.Append(&all, at, at+1)
	}
	return nil
}

func (l *levels) close() error {
	var err error
	for _, p := range l.parts {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	if l.origins != nil {
		err = errors.Join(err, l.origins.Close())
	}
	return err
}
