package nearest

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/ivf"
)

// Check reads and verifies the indexes of vectors that can be used. It returns what is damaged, and
// the number of files and of bytes that it read.
func Check(ctx context.Context, st *layout.Store, dev blockdev.Device) (found []kv.Finding,
	files int, bytes int64, err error) {
	all, err := st.Catalog().Indexes(ctx)
	if err != nil {
		return nil, 0, 0, err
	}
	for _, m := range all {
		if m.Type != IndexType || Stale(m, st) != "" {
			continue
		}
		err := check(ctx, st, dev, m)
		var damage *layout.CorruptionError
		if errors.As(err, &damage) {
			found = append(found, kv.Finding{Path: damage.Path, Block: damage.Block,
				Offset: damage.Offset, What: damage.What})
			err = nil
		}
		if err != nil {
			return found, files, bytes, err
		}
		files, bytes = files+1, bytes+m.Bytes
	}
	return found, files, bytes, nil
}

// check reads one index.
func check(ctx context.Context, st *layout.Store, dev blockdev.Device, m kv.IndexMeta) (err error) {
	x, err := ivf.Open(ctx, ivf.Place{Store: st, Dev: dev, Path: m.Path, Of: m.Of}, nil, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	return x.Check(ctx, st.Meta().Nodes)
}
