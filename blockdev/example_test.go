package blockdev_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ExampleDevice reads two blocks of a file in one batch.
func ExampleDevice() {
	fs := vfs.NewMem()
	f, err := fs.Create("numbers", vfs.WriteCategoryUnspecified)
	for block := range byte(3) {
		if err == nil {
			_, err = f.Write(append([]byte{'a' + block}, make([]byte, blockdev.Align-1)...))
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		fmt.Println(err)
		return
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = dev.Close() }()
	file, err := dev.OpenFile(fs, "numbers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = file.Close() }()
	first, last := blockdev.AlignedBuffer(blockdev.Align), blockdev.AlignedBuffer(blockdev.Align)
	err = dev.ReadBatch(context.Background(), []blockdev.Request{{File: file, Buf: first},
		{File: file, Off: 2 * blockdev.Align, Buf: last}})
	fmt.Printf("%c %c %v, %d reads\n", first[0], last[0], err, dev.Stats().Reads)
	// Output:
	// a c <nil>, 2 reads
}
