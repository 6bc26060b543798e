package stream

// CountWatch tells features that are counts, such as of words: whole numbers of 0 and more, most of
// them 0, and not only 0 and 1.
type CountWatch struct {
	other        bool // a value is no count
	more         bool // one is above 1
	values, zero uint64
}

// Observe looks at some values; nothing more once one is no count.
func (c *CountWatch) Observe(values []float32) {
	if c.other {
		return
	}
	zero, most := 0, float32(0)
	for _, v := range values {
		if v == 0 {
			zero++
			continue
		}
		if !(v > 0 && v < 1<<24) || v != float32(int32(v)) {
			c.other = true
			return
		}
		most = max(most, v)
	}
	c.values, c.zero, c.more = c.values+uint64(len(values)), c.zero+uint64(zero), c.more || most > 1
}

// Are says whether all that was observed were counts.
func (c *CountWatch) Are() bool { return !c.other && c.more && 2*c.zero > c.values }
