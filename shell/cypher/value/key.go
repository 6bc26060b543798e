package value

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Key returns bytes that are equal for equivalent values, by which rows are grouped: null is
// equivalent to null and NaN to NaN, and a whole float to its integer.
func Key(dst []byte, v any) []byte {
	dst = append(dst, byte(rank(v)))
	number := func(n int64) { dst = binary.BigEndian.AppendUint64(dst, uint64(n)) }
	switch v := v.(type) {
	case bool:
		number(int64(asInt(v)))
	case int64:
		dst = append(dst, 'i')
		number(v)
	case float64:
		if n := int64(v); v >= -1<<63 && v < 1<<63 && float64(n) == v {
			dst = append(dst, 'i')
			number(n)
			break
		}
		if math.IsNaN(v) {
			v = math.NaN()
		}
		dst = append(dst, 'f')
		number(int64(math.Float64bits(v)))
	case string:
		dst = text(dst, v)
	case List:
		number(int64(len(v)))
		for _, x := range v {
			dst = Key(dst, x)
		}
	case Map:
		number(int64(len(v)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			dst = Key(text(dst, k), v[k])
		}
	case Node:
		number(v.ID)
	case Rel:
		dst = relKey(dst, v)
	case Path:
		number(int64(len(v.Rels)))
		number(v.Nodes[0].ID)
		for _, r := range v.Rels {
			dst = relKey(dst, r)
		}
	case Temporal:
		dst = text(dst, v.String())
	}
	return dst
}

// Bytes estimates the memory of a value.
func Bytes(v any) int64 {
	const word = 16 // of an interface, or of the header of a string
	n := int64(word)
	switch v := v.(type) {
	case string:
		n += word + int64(len(v))
	case List:
		for _, x := range v {
			n += Bytes(x)
		}
	case Map:
		for k, x := range v {
			n += 3*word + int64(len(k)) + Bytes(x)
		}
	case Path:
		n += 4 * word * int64(len(v.Nodes)+len(v.Rels))
	case Node, Rel, Temporal:
		n += 4 * word
	}
	return n
}

func text(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(s))), s...)
}

func relKey(dst []byte, r Rel) []byte {
	for _, n := range []int64{r.ID, r.From, r.To} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return text(dst, r.Type)
}
