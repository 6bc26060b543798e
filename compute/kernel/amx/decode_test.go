//go:build amd64

package amx

import (
	"encoding/binary"
	"runtime"
	"testing"
	"unsafe"
)

// codeOf returns where the assembly of multiplyBlocks is. The value of the function points to a
// wrapper, which calls the function of the same name: codeOf follows that call.
func codeOf(t testing.TB) unsafe.Pointer {
	fn := multiplyBlocks
	wrapper := **(**unsafe.Pointer)(unsafe.Pointer(&fn))
	name := runtime.FuncForPC(uintptr(wrapper)).Name()
	for i := range 1024 {
		if *(*byte)(unsafe.Add(wrapper, i)) != 0xe8 { // CALL
			continue
		}
		to := unsafe.Add(wrapper, i+5+int(*(*int32)(unsafe.Add(wrapper, i+1))))
		f := runtime.FuncForPC(uintptr(to))
		if f != nil && f.Name() == name && f.Entry() == uintptr(to) && to != wrapper {
			return to
		}
	}
	t.Fatalf("no call of %s in its wrapper", name)
	return nil
}

// instruction is one while it is decoded.
type instruction struct {
	m                *machine
	wide             bool   // REX.W
	r, x, b, v       uint64 // the upper bits of the registers of ModRM and SIB, and VEX.vvvv
	mod, field, base uint64 // of ModRM, with r and b
	address          uint64 // of the operand in memory
	scale            int    // of a displacement of one byte
}

// next returns the next n bytes of the code as a number with a sign.
func (m *machine) next(n int) int64 {
	var b [8]byte
	for i := range n {
		b[i] = *(*byte)(unsafe.Add(m.code, m.at+i))
	}
	m.at += n
	shift := 64 - 8*n
	return int64(binary.LittleEndian.Uint64(b[:])<<shift) >> shift
}

func (m *machine) byte() uint64 { return uint64(m.next(1)) & 0xff }

// step runs an instruction, and says whether there is another.
func (m *machine) step() bool {
	i := &instruction{m: m, scale: 1}
	code := m.byte()
	switch code {
	case 0xc5:
		if m.byte() != 0xf8 || m.byte() != 0x77 {
			m.fail("an instruction of VEX that is not VZEROUPPER")
		}
		m.vector = [2][64]byte{}
		return m.did("VZEROUPPER")
	case 0xc4:
		return i.tiles()
	case 0x62:
		return i.vectors()
	case 0xc3:
		return false
	}
	if code&0xf0 == 0x40 { // REX
		i.wide, i.r, i.x, i.b = code&8 != 0, code>>2&1<<3, code>>1&1<<3, code&1<<3
		code = m.byte()
	}
	return i.scalar(code)
}

func (m *machine) did(name string) bool {
	m.ran[name]++
	return true
}

// operands reads ModRM, and what follows it.
func (i *instruction) operands() {
	m := i.m
	modrm := m.byte()
	i.mod, i.field, i.base = modrm>>6, modrm>>3&7|i.r, modrm&7|i.b
	if i.mod == 3 {
		return
	}
	switch low := modrm & 7; {
	case low == 4:
		sib := m.byte()
		base, index := sib&7|i.b, sib>>3&7|i.x
		if sib&7 == 5 && i.mod == 0 {
			m.fail("an address without a base")
		}
		i.address = m.reg[base]
		if index != 4 {
			i.address += m.reg[index] << (sib >> 6)
		}
	case low == 5 && i.mod == 0:
		m.fail("an address beside the code")
	default:
		i.address = m.reg[i.base]
	}
	switch i.mod {
	case 1:
		i.address += uint64(m.next(1) * int64(i.scale))
	case 2:
		i.address += uint64(m.next(4))
	}
}

// value returns the operand of ModRM that may be in memory, and set changes it.
func (i *instruction) value() uint64 {
	if i.mod == 3 {
		return i.m.reg[i.base]
	}
	return i.m.load(i.address)
}

func (i *instruction) set(v uint64) {
	i.m.zero = v == 0
	if i.mod == 3 {
		i.m.reg[i.base] = v
		return
	}
	i.m.store(i.address, v)
}

// scalar runs an instruction of general registers.
func (i *instruction) scalar(code uint64) bool {
	m := i.m
	switch {
	case code == 0x0f:
		return i.twoBytes()
	case code >= 0x70 && code <= 0x7f:
		return m.jump(code&15, m.next(1))
	case code == 0xeb:
		m.at += int(m.next(1))
		return m.did("JMP")
	case code == 0xe9:
		m.at += int(m.next(4))
		return m.did("JMP")
	case code&^7 == 0xb8 && !i.wide:
		m.reg[code&7|i.b] = uint64(uint32(m.next(4)))
		return m.did("MOVL")
	case !i.wide:
		m.fail("opcode %#x of 32 bits", code)
	}
	i.operands()
	switch code {
	case 0x8b:
		m.reg[i.field] = i.value()
		return m.did("MOVQ")
	case 0x89:
		zero := m.zero
		i.set(m.reg[i.field])
		m.zero = zero
		return m.did("MOVQ")
	case 0x8d:
		m.reg[i.field] = i.address
		return m.did("LEAQ")
	case 0x01:
		i.set(i.value() + m.reg[i.field])
	case 0x03:
		m.reg[i.field] += i.value()
		m.zero = m.reg[i.field] == 0
	case 0x83:
		i.immediate(m.next(1))
	case 0x81:
		i.immediate(m.next(4))
	case 0xc1:
		if i.field&7 != 4 {
			m.fail("a shift that is not SHLQ")
		}
		i.set(i.value() << m.byte())
	case 0xff:
		if i.field&7 != 1 {
			m.fail("opcode 0xff that is not DECQ")
		}
		i.set(i.value() - 1)
	case 0xf7:
		if i.field&7 != 0 {
			m.fail("opcode 0xf7 that is not TESTQ")
		}
		m.zero = i.value()&uint64(m.next(4)) == 0
	default:
		m.fail("opcode %#x", code)
	}
	return m.did("arithmetic")
}

// immediate is ADDQ or SUBQ of a number.
func (i *instruction) immediate(n int64) {
	switch i.field & 7 {
	case 0:
		i.set(i.value() + uint64(n))
	case 5:
		i.set(i.value() - uint64(n))
	default:
		i.m.fail("arithmetic %d with a number", i.field&7)
	}
}

func (i *instruction) twoBytes() bool {
	m := i.m
	switch code := m.byte(); {
	case code >= 0x80 && code <= 0x8f:
		return m.jump(code&15, m.next(4))
	case code == 0x18:
		i.operands() // of any address
		return m.did("PREFETCH")
	case code == 0xae && m.byte() == 0xf8:
		return m.did("SFENCE")
	default:
		m.fail("opcode 0x0f %#x", code)
	}
	return false
}

// jump goes so far if the flag is as the condition says.
func (m *machine) jump(condition uint64, by int64) bool {
	if condition&^1 != 4 {
		m.fail("a jump on condition %d", condition)
	}
	if m.zero == (condition == 4) {
		m.at += int(by)
	}
	return m.did("jump")
}

// tiles runs an instruction of VEX with three bytes, which is one of tiles.
func (i *instruction) tiles() bool {
	m := i.m
	p0, p1, code := m.byte(), m.byte(), m.byte()
	if p0&31 != 2 || p1&0x84 != 0 {
		m.fail("an instruction that is not VEX.128.0F38.W0")
	}
	i.r, i.x, i.b, i.v = ^p0>>7&1<<3, ^p0>>6&1<<3, ^p0>>5&1<<3, ^p1>>3&15
	prefix := p1 & 3
	if code != 0x5c && i.v != 0 {
		m.fail("a register that the instruction has not")
	}
	i.operands()
	switch memory := i.mod != 3; {
	case code == 0x49 && prefix == 0 && memory && i.field == 0:
		m.configure(i.address)
		return m.did("LDTILECFG")
	case code == 0x49 && prefix == 0 && !memory && i.field == 0 && i.base == 0:
		m.tile = [8]*tile{}
		return m.did("TILERELEASE")
	case code == 0x49 && prefix == 3 && !memory && i.base == 0:
		m.configured(int(i.field)).data = [16][64]byte{}
		return m.did("TILEZERO")
	case code == 0x4b && prefix == 3 && memory:
		i.rows(func(row, at []byte) { copy(row, at) })
		return m.did("TILELOADD")
	case code == 0x4b && prefix == 2 && memory:
		i.rows(func(row, at []byte) { copy(at, row) })
		return m.did("TILESTORED")
	case code == 0x5c && prefix == 2 && !memory:
		m.multiplyTiles(m.configured(int(i.field)), m.configured(int(i.base)),
			m.configured(int(i.v)))
		return m.did("TDPBF16PS")
	}
	m.fail("no instruction of tiles: opcode %#x, prefix %d", code, prefix)
	return false
}

// rows goes over the rows of a tile, and where they are in memory: an index apart.
func (i *instruction) rows(fn func(row, at []byte)) {
	m := i.m
	t := m.configured(int(i.field))
	// The index that operands added once is how far apart rows are. ModRM and SIB are what the
	// instruction ends with, but for a displacement.
	back := 1
	if i.mod == 1 {
		back = 2
	}
	sib := uint64(*(*byte)(unsafe.Add(m.code, m.at-back)))
	if i.mod == 2 || sib>>6 != 0 || sib>>3&7|i.x == 4 {
		m.fail("an address of a tile that is not a base and an index")
	}
	stride := m.reg[sib>>3&7|i.x]
	for row := range t.rows {
		fn(t.data[row][:t.bytes], m.bytes(i.address-stride+uint64(row)*stride, t.bytes))
	}
}

// vectors runs an instruction of EVEX: a copy of 64 bytes from or to memory.
func (i *instruction) vectors() bool {
	m := i.m
	p0, p1, p2, code := m.byte(), m.byte(), m.byte(), m.byte()
	if p0&0x1f != 0x11 || p1 != 0x7c || p2 != 0x48 {
		m.fail("an instruction that is not EVEX.512.0F.W0 of registers below 8")
	}
	i.r, i.x, i.b, i.scale = ^p0>>7&1<<3, ^p0>>6&1<<3, ^p0>>5&1<<3, 64
	i.operands()
	if i.mod == 3 || i.field >= uint64(len(m.vector)) {
		m.fail("a copy between vectors")
	}
	switch v := m.vector[i.field][:]; code {
	case 0x10:
		copy(v, m.bytes(i.address, 64))
		return m.did("VMOVUPS")
	case 0x2b:
		if i.address%64 != 0 {
			m.fail("VMOVNTPS to %#x, which is not at a line", i.address)
		}
		copy(m.bytes(i.address, 64), v)
		return m.did("VMOVNTPS")
	}
	m.fail("opcode %#x of EVEX", code)
	return false
}
