package source_test

import (
	"slices"
	"testing"

	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
)

// TestArchives takes archives the whole way to a store: a member is no file that could be looked
// at, and the archive is the source.
func TestArchives(t *testing.T) {
	members := files{"edges.npy": ints(shape(3, 2), 0, 1, 1, 2, 2, 0),
		"features.npy":  arr{"<f4", shape(3, 1), []float32{1, 2, 3}},
		"labels.npy":    ints(shape(3), 0, 1, -1),
		"train_idx.npy": ints(shape(2), 0, 1), "num_nodes.npy": ints(shape(1), 3)}
	ogb := files{"edge_index.npy": ints(shape(2, 3), 0, 1, 2, 1, 2, 0),
		"num_nodes_list.npy": ints(shape(1), 3), "num_edges_list.npy": ints(shape(1), 3),
		"node_feat.npy": arr{"<f4", shape(3, 1), []float32{1, 2, 3}}}
	labels := files{"node_label.npy": ints(shape(3), 0, 1, -1)}
	for name, c := range map[string]struct {
		files  files
		source string
		paths  []string
	}{
		"directory": {files{"d/all.npz": members}, "d", []string{"d/all.npz"}},
		"file":      {files{"d/all.npz": members}, "d/all.npz", []string{"d/all.npz"}},
		"OGB": {files{"d/raw/data.npz": ogb, "d/raw/node-label.npz": labels,
			"d/split/time/train.csv": "0\n1\n"}, "d",
			[]string{"d/raw/data.npz", "d/raw/node-label.npz", "d/split/time/train.csv"}},
	} {
		t.Run(name, func(t *testing.T) {
			meta, err := ingest.Run(t.Context(), c.files.fs(t),
				ingest.Options{Options: source.Options{Sources: []string{c.source},
					Memory: 128 << 20}, Out: "s"})
			if err != nil {
				t.Fatal(err)
			}
			if meta.Nodes != 3 || meta.Edges != 3 || len(meta.Features) != 1 ||
				meta.Labels == nil || meta.Labels.Labeled != 2 || len(meta.Splits) != 1 {
				t.Errorf("%+v", meta)
			}
			if !slices.Equal(meta.Source.Paths, c.paths) {
				t.Errorf("paths %q, want %q", meta.Source.Paths, c.paths)
			}
		})
	}
}
