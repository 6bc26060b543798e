package engine

// table numbers keys of 64 bits, by open addressing: 12 bytes for a place, of which at most three
// of four are taken.
type table struct {
	keys  []uint64
	vals  []int32 // value + 1; 0 for a free place
	used  int
	shift uint
}

func newTable() *table {
	const bits = 8
	return &table{keys: make([]uint64, 1<<bits), vals: make([]int32, 1<<bits), shift: 64 - bits}
}

// number returns the number of a key: keys are numbered in the order in which they come.
func (t *table) number(key uint64) int32 {
	at := t.find(key)
	if t.vals[at] == 0 {
		t.put(at, key, int32(t.used))
		return int32(t.used) - 1
	}
	return t.vals[at] - 1
}

// find returns the place of a key, or the free place where it belongs.
func (t *table) find(key uint64) (at uint64) {
	mask := uint64(len(t.keys) - 1)
	for at = key * 0x9E3779B97F4A7C15 >> t.shift; t.vals[at] != 0 && t.keys[at] != key; {
		at = (at + 1) & mask
	}
	return at
}

// put gives a key a value, at the place that find returned.
func (t *table) put(at, key uint64, val int32) {
	t.keys[at], t.vals[at] = key, val+1
	if t.used++; 4*t.used > 3*len(t.keys) {
		t.grow()
	}
}

func (t *table) grow() {
	keys, vals := t.keys, t.vals
	t.keys, t.vals = make([]uint64, 2*len(keys)), make([]int32, 2*len(keys))
	t.shift--
	for i, v := range vals {
		if v != 0 {
			at := t.find(keys[i])
			t.keys[at], t.vals[at] = keys[i], v
		}
	}
}
