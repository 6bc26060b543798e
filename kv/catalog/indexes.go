package catalog

import (
	"context"
	"errors"
	"fmt"

	"gdb/kv"
)

// PutIndex writes the record of an index, and replaces one of the same name.
func (c *Catalog) PutIndex(ctx context.Context, m kv.IndexMeta) error {
	if err := checkName("index", m.Name()); err != nil {
		return err
	}
	payload, err := marshal(m)
	if err != nil {
		return err
	}
	return c.update(ctx, func(w writer) error { return w.put([]byte(keyIndex+m.Name()), payload) })
}

// DropIndex removes the record of an index. It returns ErrNotFound if there is none.
func (c *Catalog) DropIndex(ctx context.Context, name string) error {
	key := []byte(keyIndex + name)
	return c.update(ctx, func(w writer) error {
		if err := w.get(key, func([]byte) error { return nil }); err != nil {
			return fmt.Errorf("kv: index %q: %w", name, err)
		}
		return w.remove(key)
	})
}

// Indexes returns the records of all indexes, ordered by name.
func (c *Catalog) Indexes(ctx context.Context) (all []kv.IndexMeta, err error) {
	err = c.view(ctx, func(r reader) error {
		return r.each(keyIndex, func(name string, b []byte) error {
			var m kv.IndexMeta
			err := unmarshal(b, &m)
			if err == nil && m.Name() != name {
				err = errors.New("its name is " + m.Name())
			}
			if err != nil {
				return kv.DamagedFile(c.rel(""), "index %q: %v", name, err)
			}
			all = append(all, m)
			return nil
		})
	})
	return all, err
}
