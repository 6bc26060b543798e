package bench

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestIngestMeasuresAllFormats(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("dir", 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Ingest(context.Background(), IngestOptions{FS: fs, Dir: "dir", Scale: 8, Edges: 2000,
		Dim: 4, Memory: 128 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 3 {
		t.Fatalf("%d rows, want 3", len(r.Rows))
	}
	for _, row := range r.Rows {
		if row["edges"] != uint64(2000) || row["edges_per_s"].(float64) <= 0 {
			t.Errorf("row %v", row)
		}
	}
	if names, err := fs.List("dir"); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
