package source_test

import (
	"context"
	"testing"

	"gdb/layout/ingest/source"
)

// fuzzed opens and reads a source of any contents; all that matters is that it ends in order.
func fuzzed(t *testing.T, fl files, opt source.Options) {
	src, err := source.Open(context.Background(), fl.fs(t), &opt)
	if err != nil {
		return
	}
	info := src.Info()
	err = src.Edges(context.Background(), func(c *source.EdgeChunk) error {
		if info.TextIDs != (c.SrcText != nil) || len(c.SrcInt) != len(c.DstInt) ||
			len(c.SrcText) != len(c.DstText) || c.Lines != nil && len(c.Lines) != c.Len() {
			t.Errorf("%d and %d ids, %d lines", len(c.SrcInt), len(c.DstInt), len(c.Lines))
		}
		for _, id := range c.SrcInt {
			if info.RowIDs && info.Nodes > 0 && id >= info.Nodes {
				t.Errorf("id %d of %d nodes", id, info.Nodes)
			}
		}
		return nil
	})
	if err == nil {
		_, _ = dump(src)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzTexts(f *testing.F) {
	f.Add([]byte("src,dst,weight\na,b,1\n\"c\nd\",e,2\n"), []byte("id,label,f0\na,x,1\n"), "csv",
		"0:1")
	f.Add([]byte("# c\n1 2 3\n4 5 6\n"), []byte("1\n2\n"), "snap", "")
	f.Add([]byte("a\tr\tb\n"), []byte("a,1\n"), "triples", "1")
	f.Add([]byte("0,1\n"), []byte("2\n"), "ogb", "")
	f.Fuzz(func(t *testing.T, edges, nodes []byte, format, features string) {
		fl := files{"d/edges.csv": edges, "d/nodes.csv": nodes, "d/train.txt": nodes,
			"d/train.tsv": edges, "d/test.tsv": edges, "d/raw/edge.csv": edges,
			"d/raw/num-node-list.csv": nodes, "d/raw/node-label.csv": nodes,
			"d/raw/node-feat.csv": nodes}
		fuzzed(t, fl, source.Options{Sources: []string{"d"}, Format: format, FeatureCols: features,
			SkipBad: int64(len(features))})
	})
}

func FuzzArrays(f *testing.F) {
	pairs := ints(shape(2, 3), 0, 1, 2, 1, 2, 0).bytes(f)
	f.Add(pairs, arr{"<f2", shape(3, 1), []uint16{1, 2, 3}}.bytes(f),
		arr{"|u1", shape(3), []uint8{1, 2, 3}}.bytes(f))
	f.Add(pairs, ints(shape(4), 0, 1, 1, 2).bytes(f), ints(shape(2), 3, 3).bytes(f))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		for _, fl := range []files{
			{"d/edges.npy": a, "d/features.npy": b, "d/splits.npy": c, "d/labels.npy": c},
			{"d/edges_typed.npy": a, "d/features_indptr.npy": b, "d/features_indices.npy": c,
				"d/features_values.npy": c, "d/features_shape.npy": c, "d/train_mask.npy": b},
			{"d/src.npy": a, "d/dst.npy": a, "d/labels_coo.npy": b, "d/train_idx.npy": c,
				"d/edge_time.npy": a, "d/num_nodes.npy": b},
		} {
			fuzzed(t, fl, source.Options{Sources: []string{"d"}})
		}
	})
}
