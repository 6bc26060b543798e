package group

import "math/bits"

// Table numbers keys of 64 bits, by open addressing: 12 bytes for a place, of which at most three
// of four are taken.
type Table struct {
	keys  []uint64
	vals  []int32 // value + 1; 0 for a free place
	used  int
	shift uint
	// counted says that Reserve counted the memory.
	counted bool
}

// NewTable returns a table without keys.
func NewTable() *Table {
	const bits = 8
	return &Table{keys: make([]uint64, 1<<bits), vals: make([]int32, 1<<bits), shift: 64 - bits}
}

// Number returns the number of a key: keys are numbered in the order in which they come.
func (t *Table) Number(key uint64) int32 {
	at := t.find(key)
	if t.vals[at] == 0 {
		t.put(at, key, int32(t.used))
		return int32(t.used) - 1
	}
	return t.vals[at] - 1
}

// find returns the place of a key, or the free place where it belongs.
func (t *Table) find(key uint64) (at uint64) {
	mask := uint64(len(t.keys) - 1)
	for at = key * 0x9E3779B97F4A7C15 >> t.shift; t.vals[at] != 0 && t.keys[at] != key; {
		at = (at + 1) & mask
	}
	return at
}

// put gives a key a value, at the place that find returned.
func (t *Table) put(at, key uint64, val int32) {
	t.keys[at], t.vals[at] = key, val+1
	if t.used++; 4*t.used > 3*len(t.keys) {
		t.grow()
	}
}

func (t *Table) grow() { t.resize(2 * len(t.keys)) }

// resize moves the keys to another number of places, a power of two.
func (t *Table) resize(places int) {
	keys, vals := t.keys, t.vals
	t.keys, t.vals = make([]uint64, places), make([]int32, places)
	t.shift = uint(65 - bits.Len(uint(places)))
	for i, v := range vals {
		if v != 0 {
			at := t.find(keys[i])
			t.keys[at], t.vals[at] = keys[i], v
		}
	}
}

// placeBytes is the memory of a place.
const placeBytes = 12

// after returns the bytes of the table once there is room for more keys.
func (t *Table) after(more int) int64 {
	places := len(t.keys)
	for 4*(t.used+more) > 3*places {
		places *= 2
	}
	return placeBytes * int64(places)
}

// Reserve makes room for more keys, so that put does not grow the table. The memory is counted
// before it is taken.
func (t *Table) Reserve(more int, grow func(bytes int64) error) error {
	had, want := placeBytes*int64(len(t.keys)), t.after(more+1)
	if want == had {
		return nil
	}
	if err := grow(want); err != nil {
		return err
	}
	t.resize(int(want / placeBytes))
	if t.counted {
		return grow(-had)
	}
	t.counted = true
	return nil
}

// free drops all keys, and gives back the memory that Reserve counted.
func (t *Table) free(grow func(bytes int64) error) error {
	had, counted := placeBytes*int64(len(t.keys)), t.counted
	*t = *NewTable()
	if counted {
		return grow(-had)
	}
	return nil
}

// each calls fn with all keys, in no order.
func (t *Table) each(fn func(key uint64)) {
	for i, v := range t.vals {
		if v != 0 {
			fn(t.keys[i])
		}
	}
}
