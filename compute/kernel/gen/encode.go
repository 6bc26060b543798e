//go:build avogen

package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The instructions of this file are ones that neither avo nor Go's assembler knows: avo allocates
// their registers, and encodeUnknown then replaces them by their bytes. They are encoded as Intel's
// Software Developer's Manual, volume 2, says: EVEX.512.F3.0F38.W0 and an opcode.

// opcodes has the last byte of each.
var opcodes = map[string]byte{"VDPBF16PS": 0x52, "VCVTNEPS2BF16": 0x72}

// dotPairs is acc += a·b for the pairs of bfloat16 in each lane.
func dotPairs(b, a, acc reg.Register) {
	Instruction(&ir.Instruction{Opcode: "VDPBF16PS", Operands: []operand.Op{b, a, acc},
		Inputs: []operand.Op{b, a, acc}, Outputs: []operand.Op{acc}, ISA: []string{"AVX512_BF16"}})
}

// narrowLanes rounds the floats of a to bfloat16.
func narrowLanes(a, to reg.Register) {
	Instruction(&ir.Instruction{Opcode: "VCVTNEPS2BF16", Operands: []operand.Op{a, to},
		Inputs: []operand.Op{a}, Outputs: []operand.Op{to}, ISA: []string{"AVX512_BF16"}})
}

var unknown = regexp.MustCompile(`(?m)^\t(VDPBF16PS|VCVTNEPS2BF16) +(.*)$`)

// encodeUnknown replaces the instructions in a file of assembly by their bytes.
func encodeUnknown(file string) error {
	text, err := os.ReadFile(file) //lint:os what the generator wrote
	if err != nil {
		return err
	}
	text = unknown.ReplaceAllFunc(text, func(line []byte) []byte {
		m := unknown.FindSubmatch(line)
		name, operands := string(m[1]), string(m[2])
		var at []int
		for _, r := range strings.Split(operands, ", ") {
			n, parsed := strconv.Atoi(r[1:])
			if parsed != nil || n > 31 {
				err = fmt.Errorf("%s: %s of %s: registers only", file, name, operands)
			}
			at = append(at, n)
		}
		e := evex(opcodes[name], at)
		return fmt.Appendf(nil, "\tLONG $0x%02x%02x%02x%02x; WORD $0x%02x%02x // %s %s", e[3], e[2],
			e[1], e[0], e[5], e[4], name, operands)
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644) //lint:os the same
}

// evex encodes an instruction of 512 bits whose operands are registers: its sources, the last one
// first, and where the result goes.
func evex(opcode byte, registers []int) [6]byte {
	rm, to, v := registers[0], registers[len(registers)-1], 0
	if len(registers) == 3 {
		v = registers[1]
	}
	bit := func(n, i int) byte { return byte(^n >> i & 1) } // inverted, as the prefix has them
	return [6]byte{0x62,
		bit(to, 3)<<7 | bit(rm, 4)<<6 | bit(rm, 3)<<5 | bit(to, 4)<<4 | 2,
		byte(^v&15)<<3 | 1<<2 | 2,
		2<<5 | bit(v, 4)<<3,
		opcode, 3<<6 | byte(to&7)<<3 | byte(rm&7)}
}
