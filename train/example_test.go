package train_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/testgraph"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/train"
	"gdb/train/plan"
	"gdb/train/runs"
	"gdb/train/setting"

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

// ExampleRun trains on Cora, and reads what the run recorded.
func ExampleRun() {
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
	cfg := setting.Default()
	cfg.Run, cfg.Hidden, cfg.LR, cfg.Epochs, cfg.Memory = "demo", 64, 0.01, 20, 512<<20
	result, err := train.Run(ctx, store, dev, cfg, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	epochs, edges := 0, uint64(0)
	err = runs.Open(store, "demo").Epochs(func(e *runs.Epoch) error {
		epochs, edges = epochs+1, edges+e.Sampled
		return nil
	})
	fmt.Println(epochs, "epochs, edges were sampled:", edges > 0, err)
	fmt.Println(result.Metric, "on the test split is over 0.7:", *result.Test > 0.7)

	cfg.Memory = 64 << 20
	_, err = train.MakePlan(ctx, store, dev, cfg)
	var small *plan.TooSmallError
	fmt.Println("64 MiB are too small:", errors.As(err, &small) && small.Least > cfg.Memory)
	// Output:
	// 20 epochs, edges were sampled: true <nil>
	// accuracy on the test split is over 0.7: true
	// 64 MiB are too small: true
}
