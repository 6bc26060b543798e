package ingest_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writeText writes a file.
func writeText(fs vfs.FS, name, text string) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Close())
}

// ExampleRun makes a store of a file of edges between names; edges that stand twice are one.
func ExampleRun() {
	fs := vfs.NewMem()
	if err := writeText(fs, "follows.csv", "ann,bob\nbob,cyd\nann,cyd\nann,bob\n"); err != nil {
		fmt.Println(err)
		return
	}
	meta, err := ingest.Run(context.Background(), fs,
		ingest.Options{Options: source.Options{Sources: []string{"follows.csv"},
			Memory: 128 << 20}, Out: "people.gdb", Dedup: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(meta.Nodes, "nodes,", meta.Edges, "edges, ids are", meta.IDs.Kind)

	_, err = ingest.Run(context.Background(), fs,
		ingest.Options{Options: source.Options{Sources: []string{"follows.csv"}, SrcCol: "from"},
			Out: "other.gdb"})
	fmt.Println("wrong usage:", errors.Is(err, input.ErrUsage))
	// Output:
	// 3 nodes, 3 edges, ids are string
	// wrong usage: true
}
