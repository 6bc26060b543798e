// Package nodeids opens the ids of the nodes of a store: the dictionary, and in a typed store the
// columns of types whose ids are integers.
package nodeids

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/columnfile"
)

// Open opens the ids of a store. Columns of ids take 8 bytes for each of their blocks, of 500 to
// 8192 ids, and up to 8 MiB of buffers each while they are read, which budget counts; nil counts
// none. The caller calls Close.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device, budget *mem.Budget) (
	ids.Dictionary, error) {
	if len(s.Levels()) > 0 || s.Meta().Deleted != "" {
		return openLive(ctx, s, dev, budget)
	}
	s = s.Base()
	m := s.Meta()
	if m.IDs.Kind != kv.IDsTyped {
		return ids.Open(ctx, dev, s.FS(), s.Dir(), m)
	}
	t := &typed{meta: m, shift: make([]uint64, len(m.NodeTypes)),
		types: make([]keys, len(m.NodeTypes))}
	err := t.open(ctx, s, dev, budget)
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if t.texts == nil {
		return t, nil
	}
	return mixed{t, t.texts.(reader)}, nil
}

// reader is what dictionaries of files are besides.
type reader interface {
	ids.Stats
	ids.Cacher
}

// typed is the dictionary of a store of which some types have integer ids.
type typed struct {
	meta  *kv.Meta
	types []keys
	texts ids.Dictionary // of the other types; nil if there are none
	// shift is what the nodes of a type are above their numbers in texts.
	shift []uint64
}

// mixed is a typed that has a dictionary of files, too, whose blocks it counts and caches.
type mixed struct {
	*typed
	reader
}

// keys are the open columns of a type; nil where there are none.
type keys struct{ rows, sorted, places *columnfile.Reader }

func (t *typed) open(ctx context.Context, s *layout.Store, dev blockdev.Device,
	budget *mem.Budget) (err error) {
	inTexts := uint64(0)
	for i := range t.meta.NodeTypes {
		of := &t.meta.NodeTypes[i]
		if t.shift[i] = of.First - inTexts; of.Keys == nil {
			inTexts += of.Nodes
			continue
		}
		for _, c := range []struct {
			meta *kv.TableColumn
			to   **columnfile.Reader
		}{{of.Keys.Rows, &t.types[i].rows}, {of.Keys.Sorted, &t.types[i].sorted},
			{of.Keys.Places, &t.types[i].places}} {
			if c.meta == nil {
				continue
			}
			if *c.to, err = columnfile.Open(ctx, s, dev, *c.meta, budget); err != nil {
				return err
			}
		}
	}
	if part := t.meta.InDictionary(); part != nil {
		t.texts, err = ids.Open(ctx, dev, s.FS(), s.Dir(), part)
	}
	return err
}

// Internal finds user:17 among the integers of users, or in the dictionary.
func (t *typed) Internal(ctx context.Context, external string) (kv.NodeID, error) {
	var node [1]int64
	err := t.InternalMany(ctx, []string{external}, node[:])
	if err == nil && node[0] < 0 {
		err = notFound(external)
	}
	return kv.NodeID(node[0]), err
}

func notFound(external string) error {
	return fmt.Errorf("kv: id %.100q: %w", external, kv.ErrNotFound)
}

// typeInTexts returns the type of a node by its number in the dictionary.
func (t *typed) typeInTexts(number uint64) (last int) {
	for i, of := range t.meta.NodeTypes {
		if of.Keys == nil && of.First-t.shift[i] <= number && of.Nodes > 0 {
			last = i
		}
	}
	return last
}

// InternalMany finds the integers of each type together, and the other ids in the dictionary. It
// takes 80 bytes of memory for each id.
func (t *typed) InternalMany(ctx context.Context, external []string, nodes []int64) error {
	byType := make([][]wanted, len(t.types))
	var texts []string
	var at []uint32 // the places of texts
	for i, name := range external {
		typ, key, is := t.keyOf(name)
		switch nodes[i] = ids.None; {
		case typ < 0:
			texts, at = append(texts, name), append(at, uint32(i))
		case is:
			byType[typ] = append(byType[typ], wanted{key, uint32(i)})
		}
	}
	for typ, some := range byType {
		if len(some) == 0 {
			continue
		}
		if err := t.integers(ctx, typ, some, nodes); err != nil {
			return err
		}
	}
	if t.texts == nil || len(texts) == 0 {
		return ctx.Err()
	}
	found := make([]int64, len(texts))
	err := ids.InternalMany(ctx, t.texts, texts, found)
	for k, number := range found {
		if number >= 0 {
			number += int64(t.shift[t.typeInTexts(uint64(number))])
		}
		nodes[at[k]] = number
	}
	return err
}

// wanted is an integer id that is looked up, by its place among others.
type wanted struct {
	key int64
	at  uint32
}

// keyOf returns the type of an id whose ids are integers, or -1, and the integer. Only canonical
// numbers are ids, so that each node has one name.
func (t *typed) keyOf(external string) (typ int, key int64, is bool) {
	name, id, _ := strings.Cut(external, ":")
	typ = slices.IndexFunc(t.meta.NodeTypes, func(of kv.NodeTypeMeta) bool {
		return of.Name == name && of.Keys != nil
	})
	n, err := strconv.ParseUint(id, 10, 63)
	return typ, int64(n), err == nil && strconv.FormatUint(n, 10) == id
}

// integers finds ids of a type.
func (t *typed) integers(ctx context.Context, typ int, some []wanted, nodes []int64) error {
	of, c := &t.meta.NodeTypes[typ], &t.types[typ]
	slices.SortFunc(some, func(a, b wanted) int { return cmp.Compare(a.key, b.key) })
	values, rows := make([]int64, len(some)), make([]int64, len(some))
	for i, w := range some {
		values[i] = w.key
	}
	var err error
	from := of.Keys.Rows // where rows come from
	switch {
	case c.sorted != nil:
		from = of.Keys.Places
		if err = c.sorted.FindMany(ctx, values, rows); err == nil {
			err = toRows(ctx, c.places, rows)
		}
	case c.rows != nil:
		err = c.rows.FindMany(ctx, values, rows)
	default:
		for i, key := range values {
			if rows[i] = key - int64(of.Keys.Base); uint64(rows[i]) >= of.Nodes {
				rows[i] = ids.None
			}
		}
	}
	if err != nil {
		return err
	}
	for i, row := range rows {
		switch {
		case row < 0:
		case uint64(row) >= of.Nodes:
			return kv.DamagedFile(from.Path, "id %s:%d leads to row %d of %d", of.Name, values[i],
				row, of.Nodes)
		default:
			nodes[some[i].at] = int64(of.First) + row
		}
	}
	return nil
}

// toRows turns places of sorted ids, or -1, to the rows that a column has for them.
func toRows(ctx context.Context, column *columnfile.Reader, places []int64) error {
	var some []uint64
	for _, p := range places {
		if p >= 0 {
			some = append(some, uint64(p))
		}
	}
	var v columnfile.Values
	if err := column.Gather(ctx, some, &v); err != nil {
		return err
	}
	k := 0
	for i, p := range places {
		if p >= 0 {
			places[i] = v.Ints[k]
			k++
		}
	}
	return nil
}

// External reads the ids of each type at once.
func (t *typed) External(ctx context.Context, nodes []kv.NodeID, dst []string) ([]string, error) {
	byType := make([][]uint64, len(t.types)) // each is row<<32 | place
	for i, node := range nodes {
		if uint64(node) >= t.meta.Nodes {
			return dst, fmt.Errorf("kv: node %d: %w: the store has %d nodes", node, kv.ErrNotFound,
				t.meta.Nodes)
		}
		typ := t.meta.TypeOf(node)
		byType[typ] = append(byType[typ],
			(uint64(node)-t.meta.NodeTypes[typ].First)<<32|uint64(i))
	}
	base := len(dst)
	dst = append(dst, make([]string, len(nodes))...)
	for typ, rows := range byType {
		if len(rows) == 0 {
			continue
		}
		if err := t.names(ctx, typ, rows, dst[base:]); err != nil {
			return dst[:base], err
		}
	}
	return dst, nil
}

// names puts the ids of rows of a type into their places of dst.
func (t *typed) names(ctx context.Context, typ int, rows []uint64, dst []string) error {
	of := &t.meta.NodeTypes[typ]
	if of.Keys == nil {
		var numbers []kv.NodeID
		for _, r := range rows {
			numbers = append(numbers, kv.NodeID(of.First-t.shift[typ]+r>>32))
		}
		names, err := t.texts.External(ctx, numbers, nil)
		for i, name := range names {
			dst[uint32(rows[i])] = name
		}
		return err
	}
	ints, err := t.numbers(ctx, typ, rows)
	if err != nil {
		return err
	}
	text := append([]byte(of.Name), ':')
	for i, r := range rows {
		dst[uint32(r)] = string(strconv.AppendInt(text, ints[i], 10))
		if i%(1<<12) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// numbers returns the integer ids of rows of a type.
func (t *typed) numbers(ctx context.Context, typ int, rows []uint64) ([]int64, error) {
	of := &t.meta.NodeTypes[typ]
	if of.Keys.Rows == nil {
		out := make([]int64, len(rows))
		for i, r := range rows {
			out[i] = int64(of.Keys.Base + r>>32)
		}
		return out, nil
	}
	at := make([]uint64, len(rows))
	for i, r := range rows {
		at[i] = r >> 32
	}
	var v columnfile.Values
	err := t.types[typ].rows.Gather(ctx, at, &v)
	return v.Ints, err
}

// Close closes all files.
func (t *typed) Close() error {
	var errs []error
	for i := range t.types {
		c := &t.types[i]
		for _, r := range []*columnfile.Reader{c.rows, c.sorted, c.places} {
			if r != nil {
				errs = append(errs, r.Close())
			}
		}
	}
	if t.texts != nil {
		errs = append(errs, t.texts.Close())
	}
	return errors.Join(errs...)
}
