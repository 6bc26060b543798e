// Package nodeids opens the ids of the nodes of a store: the dictionary, and in a typed store the
// columns of types whose ids are integers.
package nodeids

import (
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
	name, id, _ := strings.Cut(external, ":")
	i := slices.IndexFunc(t.meta.NodeTypes, func(of kv.NodeTypeMeta) bool {
		return of.Name == name && of.Keys != nil
	})
	if i >= 0 {
		return t.integer(ctx, i, id, external)
	}
	if t.texts == nil {
		return 0, notFound(external)
	}
	number, err := t.texts.Internal(ctx, external)
	if err != nil {
		return 0, err
	}
	return kv.NodeID(uint64(number) + t.shift[t.typeInTexts(uint64(number))]), nil
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

// integer finds an id of type i. Only canonical numbers are ids, so that each node has one name.
func (t *typed) integer(ctx context.Context, i int, id, external string) (kv.NodeID, error) {
	of := &t.meta.NodeTypes[i]
	key, err := strconv.ParseUint(id, 10, 63)
	if err != nil || strconv.FormatUint(key, 10) != id {
		return 0, notFound(external)
	}
	row, found := key-of.Keys.Base, key >= of.Keys.Base
	switch c := &t.types[i]; {
	case c.sorted != nil:
		var place columnfile.Values
		if row, found, err = c.sorted.Find(ctx, int64(key)); err == nil && found {
			if err = c.places.Gather(ctx, []uint64{row}, &place); err == nil {
				row = uint64(place.Ints[0])
			}
		}
	case c.rows != nil:
		row, found, err = c.rows.Find(ctx, int64(key))
	}
	switch {
	case err != nil:
		return 0, err
	case !found || of.Keys.Rows == nil && row >= of.Nodes:
		return 0, notFound(external)
	case row >= of.Nodes:
		return 0, kv.DamagedFile(of.Keys.Places.Path, "id %s leads to row %d of %d", external, row,
			of.Nodes)
	}
	return kv.NodeID(of.First + row), nil
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
