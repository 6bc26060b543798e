package shell_test

import (
	"context"
	"fmt"
	"os"

	"gdb/blockdev"
	"gdb/internal/testgraph"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/shell"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ExampleRun runs statements on Cora and writes their answers as CSV.
func ExampleRun() {
	fs, ctx := vfs.NewMem(), context.Background()
	if err := testgraph.WriteCora(fs, "cora"); err != nil {
		fmt.Println(err)
		return
	}
	_, err := ingest.Run(ctx, fs, ingest.Options{Options: source.Options{Sources: []string{"cora"},
		Memory: 256 << 20}, Out: "cora.gdb", Undirected: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := layout.Open(ctx, fs, "cora.gdb")
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
	err = shell.Run(ctx, shell.Options{Store: store, Dev: dev, Out: os.Stdout, Err: os.Stderr,
		Statements: []string{"DEGREES TOP 2;", "NEIGHBORS 42 HOPS 2 COUNT;"}})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// node,direction,degree
	// 1358,in,168
	// 306,in,78
	// hop,nodes,total
	// 1,2,2
	// 2,3,5
}
