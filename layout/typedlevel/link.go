package typedlevel

import (
	"errors"
	"fmt"
	"slices"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/steps"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// LinkNodes gives the files of a base, but for those of edges, a second name in dir, where a store
// was made of its edges and those of levels, and returns the metadata of both. Where the file
// system knows no second names it copies them.
func LinkNodes(fs vfs.FS, base *layout.Store, dir string, made *kv.Meta) (*kv.Meta, error) {
	meta := *base.Meta()
	meta.Created, meta.Edges, meta.Directions = made.Created, made.Edges, made.Directions
	meta.Coded, meta.EdgeTables, meta.Partitions = made.Coded, made.EdgeTables, made.Partitions
	counts := meta.Stats.CountFeatures
	meta.Stats = made.Stats
	meta.Stats.CountFeatures = counts
	meta.Files = slices.DeleteFunc(slices.Clone(made.Files), func(f kv.FileMeta) bool {
		return !isOfEdges(made, f.Path)
	})
	dirs := []string{dir}
	for _, f := range base.Meta().Files {
		if isOfEdges(base.Meta(), f.Path) {
			continue
		}
		to := fs.PathJoin(dir, f.Path)
		if d := fs.PathDir(to); !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
			if err := fs.MkdirAll(d, 0o755); err != nil {
				return nil, fmt.Errorf("make %s: %w", d, err)
			}
		}
		if err := vfs.LinkOrCopy(fs, base.Path(f.Path), to); err != nil {
			return nil, fmt.Errorf("link %s: %w", f.Path, err)
		}
		meta.Files = append(meta.Files, f)
	}
	slices.SortFunc(meta.Files, func(a, b kv.FileMeta) int {
		return slices.Compare([]byte(a.Path), []byte(b.Path))
	})
	var err error
	for _, d := range dirs {
		err = errors.Join(err, steps.SyncDir(fs, d))
	}
	return &meta, err
}

// isOfEdges reports whether a file of a store is of its lists or of tables of its edges.
func isOfEdges(m *kv.Meta, path string) bool {
	for _, dir := range []layout.Direction{layout.In, layout.Out} {
		if list, index := layout.TopologyPaths(dir); path == list || path == index {
			return true
		}
	}
	return m.IsEdgeColumn(path)
}
