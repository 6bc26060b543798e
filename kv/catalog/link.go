package catalog

import (
	"context"
	"fmt"

	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// LinkTo makes a catalog in dir that has the records of this one, and returns its metadata. The
// files of a catalog never change, so they get second names, or copies where the file system knows
// no second names. Transactions on either catalog do not change the other. The new one is durable
// with its first transaction.
func (c *Catalog) LinkTo(ctx context.Context, dir string) (*kv.Meta, error) {
	if err := c.fs.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("kv: make %s: %w", dir, err)
	}
	err := c.sealed(ctx, func(s *seal) error {
		names := []string{sealName}
		for _, f := range s.files {
			names = append(names, f.name)
		}
		for _, name := range names {
			err := vfs.LinkOrCopy(c.fs, c.fs.PathJoin(c.dir, name), c.fs.PathJoin(dir, name))
			if err != nil {
				return fmt.Errorf("kv: link %s to %s: %w", c.rel(name), dir, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return New(c.fs, dir).Meta(ctx)
}
