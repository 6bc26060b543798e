package adjacency

import (
	"context"
	"errors"
	"slices"
)

// Outline is what is known of lists whether or not they are in memory.
type Outline struct {
	// Entries is how many there are, and Squares the squares of the lengths of lists together; 0 if
	// that is not known.
	Entries uint64
	Squares float64
	// Loops says that edges may join nodes with themselves, Multi that a neighbor may stand in a
	// list twice, and Told that types or numbers may tell edges apart that have the same ends.
	Loops, Multi, Told bool
	// Least and Most bound the neighbors.
	Least, Most uint32
	// TypeBits is how many bits the type of an edge takes in a code.
	TypeBits uint8
}

// errParallel says that the number of an edge does not fit in a code.
var errParallel = errors.New("too many edges join the same two nodes to be read from the file: " +
	"give the statement more with --memory")

// Code returns what tells an entry from others with the same ends, for when its list is not there
// any more.
func (o *Outline) Code(l *Lists, entry uint32) (uint32, error) {
	number := uint64(0)
	if len(l.Num) > 0 {
		number = uint64(l.Num[entry])
	}
	code := number<<o.TypeBits | uint64(l.TypeOf(entry))
	if code >= 1<<32-1 {
		return 0, errParallel
	}
	return uint32(code), nil
}

// Decode returns what a code is of.
func (o *Outline) Decode(code uint32) (typ uint16, number uint32, back bool) {
	number = code >> o.TypeBits
	return uint16(code & (1<<o.TypeBits - 1)), number >> 1, number&1 == 1
}

// HasAll reports whether these are lists of some nodes, and all of nodes are among them.
func (l *Lists) HasAll(nodes []uint32) bool {
	if !l.finished || len(nodes) > len(l.Nodes) {
		return false
	}
	at := 0
	for _, v := range nodes {
		for at < len(l.Nodes) && l.Nodes[at] < v {
			at++
		}
		if at == len(l.Nodes) || l.Nodes[at] != v {
			return false
		}
	}
	return true
}

// Begin forgets all lists: those of some nodes follow, which ascend. Memory is kept.
func (l *Lists) Begin(nodes []uint32, grow func(int64) error) error {
	if more := 2*len(nodes) + 1 - cap(l.Off) - cap(l.Nodes); more > 0 {
		if err := grow(4 * int64(more)); err != nil {
			return err
		}
		l.Off, l.Nodes = make([]uint32, 0, len(nodes)+1), make([]uint32, 0, len(nodes))
	}
	l.finished = false
	l.Nodes = append(l.Nodes[:0], nodes...)
	l.Off = append(l.Off[:0], 0)
	l.Nbr, l.Typ, l.Num = l.Nbr[:0], l.Typ[:0], l.Num[:0]
	return nil
}

// Room makes room for n more entries.
func (l *Lists) Room(n int, typed bool, grow func(int64) error) error {
	want := len(l.Nbr) + n
	if want <= cap(l.Nbr) && (!typed || want <= cap(l.Typ)) {
		return nil
	}
	if want > 1<<32-2 {
		return ErrTooMany
	}
	return l.room(max(want, cap(l.Nbr)+cap(l.Nbr)/4), typed, false, grow)
}

// Until says that the lists up to the i-th end behind the last entry.
func (l *Lists) Until(i int) {
	for len(l.Off) < i+2 {
		l.Off = append(l.Off, l.Off[len(l.Off)-1])
	}
	l.Off[i+1] = uint32(len(l.Nbr))
}

// Finish ends the lists: it puts them in order and numbers parallel edges.
func (l *Lists) Finish(ctx context.Context, grow func(int64) error) error {
	for len(l.Off) <= len(l.Nodes) {
		l.Off = append(l.Off, uint32(len(l.Nbr)))
	}
	return l.finish(ctx, grow)
}

// Join makes these the lists of both directions of some nodes, the same in out and in in.
func (l *Lists) Join(ctx context.Context, out, in *Lists, grow func(int64) error) error {
	if err := l.Begin(out.Nodes, grow); err != nil {
		return err
	}
	l.Off = slices.Grow(l.Off, len(out.Nodes))[:len(out.Nodes)+1]
	l.Type = out.Type
	return l.join(ctx, out, in, grow)
}
