package engine

// table numbers keys of one or two nodes, by open addressing: 20 bytes for a place, of which at
// most three of four are taken.
type table struct {
	keys   []uint64
	groups []int32 // group + 1; 0 for a free place
	used   int
	shift  uint
}

func newTable() *table {
	return &table{keys: make([]uint64, 1<<10), groups: make([]int32, 1<<10), shift: 64 - 10}
}

// group returns the number of a key, which is next if it is new.
func (t *table) group(key uint64, next int32) (n int32, isNew bool) {
	mask := uint64(len(t.keys) - 1)
	for at := key * 0x9E3779B97F4A7C15 >> t.shift; ; at = (at + 1) & mask {
		switch {
		case t.groups[at] == 0:
			t.keys[at], t.groups[at] = key, next+1
			if t.used++; 4*t.used > 3*len(t.keys) {
				t.grow()
			}
			return next, true
		case t.keys[at] == key:
			return t.groups[at] - 1, false
		}
	}
}

func (t *table) grow() {
	keys, groups := t.keys, t.groups
	t.keys, t.groups = make([]uint64, 2*len(keys)), make([]int32, 2*len(keys))
	t.shift--
	mask := uint64(len(t.keys) - 1)
	for i, g := range groups {
		if g == 0 {
			continue
		}
		at := keys[i] * 0x9E3779B97F4A7C15 >> t.shift
		for t.groups[at] != 0 {
			at = (at + 1) & mask
		}
		t.keys[at], t.groups[at] = keys[i], g
	}
}
