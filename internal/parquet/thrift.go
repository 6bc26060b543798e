package parquet

import "encoding/binary"

// Types of the compact protocol.
const (
	typeI32    = 5
	typeI64    = 6
	typeBinary = 8
	typeList   = 9
	typeStruct = 12
)

// thrift encodes structures in Thrift's compact protocol: a field is a byte (its number less that
// of the field before, its type) and the value; integers are zigzag varints; a structure ends with
// a zero byte.
type thrift struct {
	out  []byte
	last []int // the number of the last field, of each structure that is open
}

// begin opens a structure that is not a field: the outermost, or an element of a list.
func (t *thrift) begin() { t.last = append(t.last, 0) }

// end closes the innermost structure.
func (t *thrift) end() {
	t.out = append(t.out, 0)
	t.last = t.last[:len(t.last)-1]
}

func (t *thrift) field(id, kind int) {
	top := len(t.last) - 1
	t.out = append(t.out, byte(id-t.last[top])<<4|byte(kind)) // numbers are less than 15 apart
	t.last[top] = id
}

func (t *thrift) structure(id int) {
	t.field(id, typeStruct)
	t.begin()
}

func (t *thrift) i32(id int, v int32) {
	t.field(id, typeI32)
	t.zigzag(int64(v))
}

func (t *thrift) i64(id int, v int64) {
	t.field(id, typeI64)
	t.zigzag(v)
}

func (t *thrift) text(id int, s string) {
	t.field(id, typeBinary)
	t.bytes(s)
}

// list opens a list; its elements follow.
func (t *thrift) list(id, kind, n int) {
	t.field(id, typeList)
	if n < 15 {
		t.out = append(t.out, byte(n<<4|kind))
		return
	}
	t.out = append(t.out, byte(0xf0|kind))
	t.out = binary.AppendUvarint(t.out, uint64(n))
}

func (t *thrift) bytes(s string) {
	t.out = binary.AppendUvarint(t.out, uint64(len(s)))
	t.out = append(t.out, s...)
}

func (t *thrift) zigzag(v int64) { t.out = binary.AppendVarint(t.out, v) }
