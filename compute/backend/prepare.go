package backend

import "gdb/internal/mem"

// BlockAlign is what parts of a Block begin at multiples of, in words: 256 bytes, more than any
// load of a device asks for.
const BlockAlign = 64

// Block is memory of the host in which lists and values of a batch are prepared, in the layout in
// which a device reads them: all of it is copied there at once. It belongs to one goroutine after
// the other, and to the backend once it was sent.
type Block struct {
	Words []uint32
	// Memory has the words, and may have more.
	Memory *mem.Arena
}

// ListSizes are the numbers of lists and of their entries, and what is made of them: see Lists.
type ListSizes struct {
	Lists, Entries int
	At             bool // entries have places in a matrix that is dropped out
	Rows           int  // that gradients are asked for; 0 for none
	Weights        bool // gradients of weights of entries are asked for
}

// Sizes returns the numbers of lists.
func (l *Lists) Sizes() ListSizes {
	return ListSizes{Lists: max(0, len(l.Off)-1), Entries: len(l.Idx), At: l.At != nil,
		Rows: l.Rows, Weights: l.Entries}
}

// Preparer prepares batches for a device beside its steps. All but Send may be called from any
// goroutine.
type Preparer interface {
	// ListWords returns how many words of a block lists take, a multiple of BlockAlign.
	ListWords(s ListSizes) int
	// ListsIn returns lists whose Off, Idx and At lie in ListWords words, for the caller to write.
	ListsIn(words []uint32, s ListSizes) Lists
	// FinishLists makes what else a device reads of lists that ListsIn returned in the same words
	// and the caller wrote. It takes about 5 ns for an entry.
	FinishLists(words []uint32, l *Lists)
	// TakeBlock returns a block of a number of words, with any values in it, or a mem.LimitError.
	TakeBlock(words int) (*Block, error)
	// DropBlock gives a block back that was not sent.
	DropBlock(b *Block)
	// Send copies a block to the device for the step that was begun, and returns it as a vector.
	// The backend has the block then.
	Send(b *Block) Tensor
}
