package main

import "fmt"

// The instructions of this file are ones that Go's assembler does not know. They are encoded as the
// Arm Architecture Reference Manual for A-profile says (C7.2), for vectors of four 32-bit lanes,
// and written as a word with what a disassembler calls them.

// binaries are the instructions of two sources: the sources have their numbers from bit 5 and 16.
var binaries = map[string]uint32{
	"fadd": 0x4e20d400, "fsub": 0x4ea0d400, "fmul": 0x6e20dc00, "fdiv": 0x6e20fc00,
	"fmax": 0x4e20f400, "fmin": 0x4ea0f400, "faddp": 0x6e20d400, "fabd": 0x6ea0d400,
	"fcmgt": 0x6ea0e400, "fcmge": 0x6e20e400, "fcmeq": 0x4e20e400,
	"mul": 0x4ea09c00, "cmhs": 0x6ea03c00,
}

// unaries are the instructions of one source, whose number begins at bit 5.
var unaries = map[string]uint32{
	"fabs": 0x4ea0f800, "fsqrt": 0x6ea1f800, "fcvtns": 0x4e21a800, "scvtf": 0x4e21d800,
}

// signs are the comparisons of one source with zero.
var signs = map[string]uint32{"fcmgt": 0x4ea0c800, "fcmlt": 0x4ea0e800}

// encoded writes the word of an instruction, and its name and operands.
func encoded(word uint32, format string, operands ...any) string {
	return fmt.Sprintf("WORD $0x%08x // "+format, append([]any{word}, operands...)...)
}

func binary(name string, to, a, b vec) string {
	return encoded(known(binaries, name)|uint32(b)<<16|uint32(a)<<5|uint32(to),
		"%s v%d.4s, v%d.4s, v%d.4s", name, to, a, b)
}

func unary(name string, to, a vec) string {
	return encoded(known(unaries, name)|uint32(a)<<5|uint32(to), "%s v%d.4s, v%d.4s", name, to, a)
}

func sign(name string, to, a vec) string {
	return encoded(known(signs, name)|uint32(a)<<5|uint32(to), "%s v%d.4s, v%d.4s, #0.0", name,
		to, a)
}

// multiplyLane is to += a times one lane of b.
func multiplyLane(to, a, b vec, lane int) string {
	index := uint32(lane&1)<<21 | uint32(lane>>1)<<11
	return encoded(0x4f801000|index|uint32(b)<<16|uint32(a)<<5|uint32(to),
		"fmla v%d.4s, v%d.4s, v%d.s[%d]", to, a, b, lane)
}

// maximumOfLanes has the largest lane of a in the first of to.
func maximumOfLanes(to, a vec) string {
	return encoded(0x6e30f800|uint32(a)<<5|uint32(to), "fmaxv s%d, v%d.4s", to, a)
}

// andNot is to = a without the bits of b.
func andNot(to, a, b vec) string {
	return encoded(0x4e601c00|uint32(b)<<16|uint32(a)<<5|uint32(to),
		"bic v%d.16b, v%d.16b, v%d.16b", to, a, b)
}

// known returns the word of an instruction that a table must have.
func known(table map[string]uint32, name string) uint32 {
	word, ok := table[name]
	if !ok {
		panic("BUG: no encoding of " + name)
	}
	return word
}
