package listfile

import (
	"errors"
	"fmt"

	"gdb/layout"
)

// ErrHeldFull is returned where lists take more blocks than Held has room for.
var ErrHeldFull = errors.New("layout: lists take more memory than was counted for them")

// Filler fills Held with lists that are in no file: blocks of a file whose lists stay, and lists
// that it codes. They come in order, each sorted by neighbor.
type Filler struct {
	h *Held
	packing
	scratch Lists
}

// NewFiller returns a Filler of an empty Held.
func (h *Held) NewFiller() *Filler {
	f := &Filler{h: h}
	f.packing = newPacking(&h.Shape, "code lists anew", f.put)
	return f
}

// put adds a block that was filled.
func (f *Filler) put(b *blockBuilder) error {
	k, err := ParseBlock(&f.h.Shape, b.finish(uint64(f.h.blocks)+1))
	if err != nil {
		return fmt.Errorf("BUG: coded lists anew: %w", err)
	}
	return f.hold(&k)
}

// hold adds a block to Held.
func (f *Filler) hold(k *Block) error {
	if f.h.blocks == len(f.h.firsts) {
		return ErrHeldFull
	}
	return f.h.Add(k, &f.scratch)
}

// Begin begins the list of a node, at position start where a block that was added as it is has the
// entries before.
func (f *Filler) Begin(node layout.NodeID, start uint32) error {
	err := f.begin(node)
	f.start = start
	return err
}

// Add adds entries from … to-1 of l to the list that was begun.
func (f *Filler) Add(l *Lists, from, to uint64) error {
	if err := f.sorted(l.Nbrs[from:to]); err != nil {
		return err
	}
	return f.add(l, from, to)
}

// Block adds a block of a file as it is. The lists before it end with the block that they are in.
func (f *Filler) Block(k *Block) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.hold(k)
}

// Finish completes Held, and gives back the memory that it does not need.
func (f *Filler) Finish() error {
	if err := f.flush(); err != nil {
		return err
	}
	if err := f.h.Finish(); err != nil {
		return err
	}
	return f.h.trim()
}
