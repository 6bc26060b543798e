package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/testgraph"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/topology"
	"gdb/sample/loader"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// coraStore makes a store of Cora, papers and their citations.
func coraStore(ctx context.Context) (*layout.Store, error) {
	fs := vfs.NewMem()
	if err := testgraph.WriteCora(fs, "cora"); err != nil {
		return nil, err
	}
	if _, err := ingest.Run(ctx, fs,
		ingest.Options{Options: source.Options{Sources: []string{"cora"}, Memory: 256 << 20},
			Out: "cora.gdb", Undirected: true}); err != nil {
		return nil, err
	}
	return layout.Open(ctx, fs, "cora.gdb")
}

// ExampleLoader loads the batches of an epoch, with everything in memory and without a model.
func ExampleLoader() {
	ctx := context.Background()
	store, err := coraStore(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = dev.Close() }()
	src := loader.NewSource(store, dev, mem.NewBudget(256<<20))
	defer func() { _ = src.Close() }()
	err = errors.Join(src.OpenGraph(ctx, topology.Options{Resident: true, Budget: src.Budget}),
		src.OpenRows(ctx), src.OpenLabels(ctx),
		src.OpenFeatures(ctx, loader.Cache{Policy: "none", Threads: 1}))
	if err != nil {
		fmt.Println(err)
		return
	}
	seeds, err := loader.TrainNodes(ctx, store, "", src.Budget)
	if err != nil {
		fmt.Println(err)
		return
	}
	batches := loader.New(src, loader.Config{Seeds: seeds, Batch: 50, Fanout: []int{5, 5}, Seed: 1,
		Workers: 1, Ready: 1})
	defer func() { _ = batches.Close() }()
	epoch, err := batches.Epoch(ctx, 0, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = epoch.Close() }()
	for {
		b, err := epoch.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(b.Seeds), "seeds,", len(b.Labels), "labels, features of all nodes:",
			len(b.X) == len(b.Dense.NodeIDs)*b.Dim)
	}
	// Output:
	// 50 seeds, 50 labels, features of all nodes: true
	// 50 seeds, 50 labels, features of all nodes: true
	// 40 seeds, 40 labels, features of all nodes: true
}
