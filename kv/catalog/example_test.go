package catalog_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/kv"
	"gdb/kv/catalog"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A catalog makes a store exist, and takes the records of runs afterwards.
func ExampleCatalog() {
	ctx, fs := context.Background(), vfs.NewMem()
	c := catalog.New(fs, "store/catalog")
	_, err := c.Meta(ctx)
	fmt.Println("before:", errors.Is(err, kv.ErrNoStore))

	m := &kv.Meta{Format: kv.FormatVersion, Nodes: 4,
		IDs:    kv.IDsMeta{Kind: kv.IDsDense},
		Splits: []kv.SplitMeta{{Name: "train", Count: 2}}}
	sets := map[string]*roaring.Bitmap{"train": roaring.BitmapOf(0, 3)}
	if err := c.Create(ctx, m, sets); err != nil {
		fmt.Println(err)
		return
	}
	if err := c.PutRun(ctx, kv.RunMeta{Name: "r0001", Status: "running"}); err != nil {
		fmt.Println(err)
		return
	}
	train, err := c.Set(ctx, "train")
	fmt.Println("train:", train, err)
	runs, err := c.Runs(ctx)
	fmt.Println("runs:", len(runs), runs[0].Status, err)
	findings, err := c.Verify(ctx)
	fmt.Println("findings:", len(findings), err)
	// Output:
	// before: true
	// train: {0,3} <nil>
	// runs: 1 running <nil>
	// findings: 0 <nil>
}
