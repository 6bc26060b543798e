package openfiles_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/openfiles"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// people makes a store of three people, of whom some follow others.
func people(ctx context.Context, fs vfs.FS) (*layout.Store, error) {
	f, err := fs.Create("follows.csv", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte("ann,bob\nbob,cyd\nann,cyd\n"))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if _, err = ingest.Run(ctx, fs,
		ingest.Options{Options: source.Options{Sources: []string{"follows.csv"},
			Memory: 128 << 20}, Out: "people.gdb"}); err != nil {
		return nil, err
	}
	return layout.Open(ctx, fs, "people.gdb")
}

// ExampleSet finds a node by its external id, reads its list and names its neighbors.
func ExampleSet() {
	ctx := context.Background()
	store, err := people(ctx, vfs.NewMem())
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
	files := openfiles.New(store, dev, mem.NewBudget(16<<20))
	defer func() { _ = files.Close() }()
	ids, err := files.IDs(ctx, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	cyd, err := ids.Internal(ctx, "cyd")
	if err != nil {
		fmt.Println(err)
		return
	}
	lists, err := files.Topology(ctx, layout.In, topology.Options{Resident: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	session := lists.NewSession()
	defer session.Release()
	list, err := session.Lists(ctx, []layout.NodeID{cyd})
	if err != nil {
		fmt.Println(err)
		return
	}
	names, err := ids.External(ctx, list.Nbrs, nil)
	fmt.Println("cyd is followed by", names, err)
	// Output:
	// cyd is followed by [ann bob] <nil>
}
