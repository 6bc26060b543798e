package ids_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/kv/ids"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The dictionary is written from sorted entries and read by block.
func ExampleOpen() {
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
	dict, err := ids.Open(ctx, dev, fs, "store", m)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dict.Close()
	fmt.Println(dict.Internal(ctx, "bob"))
	fmt.Println(dict.Internal(ctx, "carol"))
	fmt.Println(dict.External(ctx, []kv.NodeID{1, 0}, nil))
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
	forward, err := ids.NewForwardWriter(fs, "store/"+ids.ForwardPath, m.UUID, m.IDs.HashSeed)
	if err != nil {
		return err
	}
	reverse, err := ids.NewReverseWriter(fs, "store/"+ids.ReversePath, m.UUID)
	if err != nil {
		return errors.Join(err, forward.Abort())
	}
	names := [][]byte{[]byte("alice"), []byte("bob")}
	order := []kv.NodeID{0, 1}
	if ids.Hash(m.IDs.HashSeed, names[1]) < ids.Hash(m.IDs.HashSeed, names[0]) {
		order = []kv.NodeID{1, 0}
	}
	for _, id := range order {
		err = errors.Join(err, forward.Add(ids.Hash(m.IDs.HashSeed, names[id]), names[id], id))
	}
	for _, name := range names {
		err = errors.Join(err, reverse.Add(name))
	}
	f, err1 := forward.Finish()
	r, err2 := reverse.Finish()
	m.Files = append(m.Files, f, r)
	return errors.Join(err, err1, err2)
}
