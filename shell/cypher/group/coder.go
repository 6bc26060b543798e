package group

import (
	"math"

	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// Coder numbers the values of a key, in the order in which they come: equivalent values have one
// number, by value.Key. Values of 64 bits are looked up in a table, without their keys being made
// again.
type Coder struct {
	env    *vector.Env
	keys   map[string]int32
	tables [4]*Table
	key    []byte
}

// NewCoder returns a coder without values.
func NewCoder(env *vector.Env) *Coder { return &Coder{env: env, keys: map[string]int32{}} }

// HasTable reports whether values of a kind are looked up as 64 bits.
func HasTable(k vector.Kind) bool { return tableOf(k) >= 0 }

// tableOf returns which table has the values of a kind; -1 if none has.
func tableOf(k vector.Kind) int {
	switch k {
	case vector.Int:
		return 0
	case vector.Float:
		return 1
	case vector.Date:
		return 2
	case vector.Timestamp:
		return 3
	}
	return -1
}

// Codes writes the numbers of the values of a vector.
func (c *Coder) Codes(v *vector.Vector, out []int32) (err error) {
	k := tableOf(v.Kind)
	switch {
	case len(out) == 0:
	case v.Const:
		out[0], err = c.code(v, 0)
		for i := range out {
			out[i] = out[0]
		}
	case k >= 0:
		if c.tables[k] == nil {
			c.tables[k] = NewTable()
		}
		err = c.looked(c.tables[k], v, out)
	default:
		for i := range out {
			if out[i], err = c.code(v, i); err != nil {
				return err
			}
		}
	}
	return err
}

// looked writes the numbers of values of 64 bits.
func (c *Coder) looked(t *Table, v *vector.Vector, out []int32) (err error) {
	for i := range out {
		if v.IsNull(i) {
			if out[i], err = c.code(v, i); err != nil {
				return err
			}
			continue
		}
		bits := uint64(0)
		if v.Kind == vector.Float {
			bits = math.Float64bits(v.Floats[i])
		} else {
			bits = uint64(v.Ints[i])
		}
		at := t.find(bits)
		if t.vals[at] != 0 {
			out[i] = t.vals[at] - 1
			continue
		}
		if out[i], err = c.code(v, i); err != nil {
			return err
		}
		t.put(at, bits, out[i])
	}
	return nil
}

// codeBytes is the memory of a number, without its key.
const codeBytes = 64

// code returns the number of a value by its key.
func (c *Coder) code(v *vector.Vector, row int) (int32, error) {
	c.key = value.Key(c.key[:0], v.At(row))
	n, ok := c.keys[string(c.key)]
	if ok {
		return n, nil
	}
	n = int32(len(c.keys))
	c.keys[string(c.key)] = n
	return n, c.env.Row.Grow(codeBytes + int64(len(c.key)))
}
