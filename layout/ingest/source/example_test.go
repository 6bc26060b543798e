package source_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ExampleOpen streams the edges of a text file.
func ExampleOpen() {
	fs, ctx := vfs.NewMem(), context.Background()
	f, err := fs.Create("trust.csv", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte("src,dst,weight\n7,9,0.5\n9,8,1\n"))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		fmt.Println(err)
		return
	}
	src, err := source.Open(ctx, fs, &source.Options{Sources: []string{"trust.csv"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = src.Close() }()
	fmt.Println(src.Info().Format, "with weights:", src.Info().Weighted)
	err = src.Edges(ctx, func(c *source.EdgeChunk) error {
		for i := range c.Len() {
			fmt.Println(c.Position(i), c.SrcInt[i], c.DstInt[i], c.Weight[i])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// csv with weights: true
	// trust.csv line 2 7 9 0.5
	// trust.csv line 3 9 8 1
}
