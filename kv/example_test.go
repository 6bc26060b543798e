package kv_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/kv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A catalog makes a store exist, and takes the records of runs afterwards.
func ExampleCatalog() {
	ctx, fs := context.Background(), vfs.NewMem()
	c := kv.NewCatalog(fs, "store/catalog")
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

// The dictionary is written from sorted entries and read by block.
func ExampleOpenIDs() {
	ctx, fs := context.Background(), vfs.NewMem()
	m := &kv.Meta{Nodes: 2, IDs: kv.IDsMeta{Kind: kv.IDsString, HashSeed: 1}}
	if err := writeTwo(fs, m); err != nil {
		fmt.Println(err)
		return
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	ids, err := kv.OpenIDs(ctx, dev, fs, "store", m)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ids.Close()
	fmt.Println(ids.Internal(ctx, "bob"))
	fmt.Println(ids.Internal(ctx, "carol"))
	fmt.Println(ids.External(ctx, []kv.NodeID{1, 0}, nil))
	// Output:
	// 1 <nil>
	// 0 kv: id "carol": not found
	// [bob alice] <nil>
}

// writeTwo writes the dictionary of alice, node 0, and bob, node 1.
func writeTwo(fs vfs.FS, m *kv.Meta) error {
	if err := fs.MkdirAll("store/ids", 0o755); err != nil {
		return err
	}
	forward, err := kv.NewForwardWriter(fs, "store/"+kv.ForwardPath, m.UUID, m.IDs.HashSeed)
	if err != nil {
		return err
	}
	reverse, err := kv.NewReverseWriter(fs, "store/"+kv.ReversePath, m.UUID)
	if err != nil {
		return errors.Join(err, forward.Abort())
	}
	names := [][]byte{[]byte("alice"), []byte("bob")}
	order := []kv.NodeID{0, 1}
	if kv.HashID(m.IDs.HashSeed, names[1]) < kv.HashID(m.IDs.HashSeed, names[0]) {
		order = []kv.NodeID{1, 0}
	}
	for _, id := range order {
		err = errors.Join(err, forward.Add(kv.HashID(m.IDs.HashSeed, names[id]), names[id], id))
	}
	for _, name := range names {
		err = errors.Join(err, reverse.Add(name))
	}
	f, err1 := forward.Finish()
	r, err2 := reverse.Finish()
	m.Files = append(m.Files, f, r)
	return errors.Join(err, err1, err2)
}
