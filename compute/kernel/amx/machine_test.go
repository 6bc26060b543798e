//go:build amd64

package amx

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"unsafe"
)

// machine runs the code of multiplyBlocks as the linker placed it, byte by byte, on a processor
// without AMX. It knows the instructions that the code has, and memory that it is given: anything
// else is an error. Instructions of tiles do what Intel's Software Developer's Manual, volume 2,
// says, independently of Reference.
type machine struct {
	code   unsafe.Pointer // where instruction 0 is
	at     int            // the instruction that is next, from code on
	reg    [16]uint64
	zero   bool // the flag, of the last instruction that sets it
	vector [2][64]byte
	tile   [8]*tile // nil: not configured
	memory []region
	ran    map[string]int // instructions, by name
}

// tile has as many rows and bytes a row as its configuration says.
type tile struct {
	rows, bytes int
	data        [16][64]byte
}

// region is memory that the code may use.
type region struct {
	name string
	at   uint64
	data []byte
}

const stackPointer = 4

// regionOf returns the memory of a slice.
func regionOf[T any](name string, x []T) region {
	size := int(unsafe.Sizeof(*new(T)))
	p := unsafe.Pointer(unsafe.SliceData(x))
	return region{name, uint64(uintptr(p)), unsafe.Slice((*byte)(p), len(x)*size)}
}

// fault is what a machine stops with.
type fault struct{ error }

func (m *machine) fail(format string, args ...any) {
	panic(fault{fmt.Errorf("at %#x: "+format, append([]any{m.at}, args...)...)})
}

// bytes is memory at an address.
func (m *machine) bytes(at uint64, n int) []byte {
	for _, r := range m.memory {
		if from := at - r.at; from < uint64(len(r.data)) && n <= len(r.data)-int(from) {
			return r.data[from:][:n]
		}
	}
	m.fail("%d bytes at %#x are no memory of the call", n, at)
	return nil
}

func (m *machine) load(at uint64) uint64 { return binary.LittleEndian.Uint64(m.bytes(at, 8)) }
func (m *machine) store(at, v uint64)    { binary.LittleEndian.PutUint64(m.bytes(at, 8), v) }

// call runs the code with arguments on the stack, as ABI0 has them.
func (m *machine) call(args ...uint64) (err error) {
	stack := append([]uint64{0xdead}, args...) // below them is where it returns to
	m.memory = append(m.memory, regionOf("stack", stack))
	m.reg[stackPointer] = m.memory[len(m.memory)-1].at
	defer func() {
		if f, ok := recover().(fault); ok {
			err = f.error
		}
	}()
	for m.step() {
	}
	for i, t := range m.tile {
		if t != nil {
			return fmt.Errorf("tile %d is not released", i)
		}
	}
	return nil
}

// configure is LDTILECFG.
func (m *machine) configure(at uint64) {
	c := m.bytes(at, 64)
	if c[0] != 1 || c[1] != 0 {
		m.fail("a configuration of palette %d and start row %d", c[0], c[1])
	}
	for i := range m.tile {
		t := &tile{rows: int(c[48+i]), bytes: int(binary.LittleEndian.Uint16(c[16+2*i:]))}
		if t.rows > 16 || t.bytes > 64 || t.rows == 0 || t.bytes == 0 {
			m.fail("a configuration of %d rows of %d bytes", t.rows, t.bytes)
		}
		m.tile[i] = t
	}
}

// configured returns a tile that is.
func (m *machine) configured(i int) *tile {
	if i > 7 || m.tile[i] == nil {
		m.fail("tile %d is not configured", i)
	}
	return m.tile[i]
}

// multiplyTiles is TDPBF16PS: c += a·b.
func (m *machine) multiplyTiles(c, a, b *tile) {
	pairs := a.bytes / 4
	if a.rows != c.rows || pairs != b.rows || b.bytes != c.bytes || a == b || a == c || b == c {
		m.fail("tiles of shapes that do not fit")
	}
	word := binary.LittleEndian.Uint32
	for row := range c.rows {
		var sums [32]float32
		for k := range pairs {
			x := word(a.data[row][4*k:])
			for n := range c.bytes / 4 {
				y := word(b.data[k][4*n:])
				sums[2*n] = fused(x<<16, y<<16, sums[2*n])
				sums[2*n+1] = fused(x&^0xffff, y&^0xffff, sums[2*n+1])
			}
		}
		for n := range c.bytes / 4 {
			to := c.data[row][4*n:]
			sum := added(math.Float32frombits(word(to)), added(sums[2*n], sums[2*n+1]))
			binary.LittleEndian.PutUint32(to, math.Float32bits(sum))
		}
	}
}

// fused returns x·y+z, where x and y are bits of float32, rounded once; added is x+y. Denormals are
// zeros before and after.
func fused(x, y uint32, z float32) float32 {
	a, b := noDenormal(math.Float32frombits(x)), noDenormal(math.Float32frombits(y))
	return rounded(math.FMA(float64(a), float64(b), float64(noDenormal(z))))
}

func added(x, y float32) float32 {
	return rounded(float64(noDenormal(x)) + float64(noDenormal(y)))
}

func noDenormal(x float32) float32 {
	if bits := math.Float32bits(x); bits&0x7f800000 == 0 {
		return math.Float32frombits(bits & (1 << 31))
	}
	return x
}

// rounded makes a float32 of a sum. It is denormal if it would be with any number of digits of the
// exponent, that is, if its magnitude rounded to 24 digits is below 2^-126.
func rounded(x float64) float32 {
	if scaled := float32(x * 0x1p64); math.Abs(float64(scaled)) < 0x1p-62 {
		return float32(math.Copysign(0, x))
	}
	return float32(x)
}

// newMachine returns one for multiplyBlocks.
func newMachine(t testing.TB, memory ...region) *machine {
	return &machine{code: codeOf(t), memory: memory, ran: map[string]int{}}
}

// emulated is Multiply on a machine.
func emulated(t testing.TB, ran map[string]int) func(*Blocks) {
	return func(b *Blocks) {
		b.check()
		buffer := make([]float32, Side*Side)
		m := newMachine(t, regionOf("A", b.A), regionOf("B", b.B), regionOf("C", b.C),
			regionOf("buffer", buffer), regionOf("configuration", configuration[:]))
		at := func(i int) uint64 { return m.memory[i].at }
		err := m.call(uint64(b.Rows), uint64(b.Cols), uint64(b.Steps), at(0), uint64(2*b.ARow),
			uint64(2*b.AStep), uint64(2*b.ATile), at(1), at(2), uint64(4*b.CRow), b.mode(), at(3),
			uint64(b.Next), uint64(b.NextStep), at(4))
		if err != nil {
			t.Fatalf("the emulated code: %v", err)
		}
		for name, times := range m.ran {
			ran[name] += times
		}
	}
}
