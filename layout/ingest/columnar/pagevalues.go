package columnar

import (
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// pageValues has the values of a page of Parquet that are there, as it was unpacked, in the slice
// of their type. With a dictionary, that slice is the dictionary's, and index has the place in it
// of each value of the page. It is valid until the page is given back.
type pageValues struct {
	column  *column
	kind    encoding.Kind
	int32s  []int32
	int64s  []int64
	float32 []float32
	float64 []float64
	bytes   []byte   // of texts, of halves, and a bit for each truth
	ends    []uint32 // of texts: where each begins, and where the last one ends
	index   []int32  // nil without a dictionary
}

// valuesOf returns the values of a page.
func valuesOf(c *column, page parquet.Page) pageValues {
	v, data := pageValues{column: c}, page.Data()
	if d := page.Dictionary(); d != nil {
		v.index = data.Int32()
		data = d.Page().Data()
	}
	switch v.kind = data.Kind(); v.kind {
	case encoding.Int32:
		v.int32s = data.Int32()
	case encoding.Int64:
		v.int64s = data.Int64()
	case encoding.Float:
		v.float32 = data.Float()
	case encoding.Double:
		v.float64 = data.Double()
	case encoding.ByteArray:
		v.bytes, v.ends = data.ByteArray()
	case encoding.FixedLenByteArray, encoding.Boolean:
		v.bytes, _ = data.Data()
	}
	return v
}

// text returns value i of a column of texts.
func (v *pageValues) text(i int) []byte {
	if v.column.form == others {
		return []byte("<" + v.column.what + ">")
	}
	if v.index != nil {
		i = int(v.index[i])
	}
	return v.bytes[v.ends[i]:v.ends[i+1]]
}

// bits returns value i of another column.
func (v *pageValues) bits(i int) int64 {
	if v.index != nil {
		i = int(v.index[i])
	}
	switch v.kind {
	case encoding.Int32:
		if n := v.int32s[i]; v.column.form != unsigned {
			return int64(n)
		}
		return int64(uint32(v.int32s[i]))
	case encoding.Int64:
		return v.int64s[i]
	case encoding.Float:
		return floatBits(v.float32[i])
	case encoding.Double:
		return int64(math.Float64bits(v.float64[i]))
	case encoding.Boolean:
		return int64(v.bytes[i/8] >> (i % 8) & 1)
	}
	return floatBits(halfFloat(binary.LittleEndian.Uint16(v.bytes[2*i:])))
}

// floatBits returns a number as cells keep it.
func floatBits(x float32) int64 { return int64(math.Float64bits(float64(x))) }

// add appends the values from … to to a column.
func (v *pageValues) add(c *cursor, from, to int) {
	switch {
	case c.isText():
		for i := from; i < to; i++ {
			c.addText(v.text(i))
		}
	case v.index == nil && v.kind == encoding.Int64:
		c.addBits(v.int64s[from:to]...)
	case v.index == nil && v.kind == encoding.Double:
		for _, x := range v.float64[from:to] {
			c.bits = append(c.bits, int64(math.Float64bits(x)))
		}
		c.nulls = append(c.nulls, make([]bool, to-from)...)
	default:
		for i := from; i < to; i++ {
			c.bits = append(c.bits, v.bits(i))
		}
		c.nulls = append(c.nulls, make([]bool, to-from)...)
	}
}
