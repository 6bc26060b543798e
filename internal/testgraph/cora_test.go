package testgraph

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestWriteCora(t *testing.T) {
	fs := vfs.NewMem()
	if err := WriteCora(fs, "cora"); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"edges.npy": 84576, "features.npy": 15522384, "labels.npy": 21792,
		"train_idx.npy": 1248, "val_idx.npy": 4128, "test_idx.npy": 8128}
	for name, size := range want {
		info, err := fs.Stat("cora/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != size {
			t.Errorf("%s has %d bytes, want %d", name, info.Size(), size)
		}
	}
}
