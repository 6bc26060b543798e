package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestEncodings has a disassembler read the words of all instructions, with several registers and
// lanes.
func TestEncodings(t *testing.T) {
	llvm, err := exec.LookPath("llvm-mc")
	if err != nil {
		t.Skip("no llvm-mc (LLVM) to read the encodings with")
	}
	var code, want strings.Builder
	for _, line := range everyInstruction() {
		word, name, _ := strings.Cut(line, " // ")
		var bits uint32
		if _, err := fmt.Sscanf(word, "WORD $0x%x", &bits); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&code, "0x%02x 0x%02x 0x%02x 0x%02x\n", byte(bits), byte(bits>>8),
			byte(bits>>16), byte(bits>>24))
		fmt.Fprintln(&want, name)
	}
	cmd := exec.Command(llvm, "--disassemble", "--triple=aarch64")
	cmd.Stdin = strings.NewReader(code.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got strings.Builder
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != ".text" && f[0] != ".section" {
			fmt.Fprintln(&got, strings.Join(f, " "))
		}
	}
	if got.String() != want.String() {
		t.Errorf("llvm-mc reads\n%s\nwant\n%s", got.String(), want.String())
	}
}

// everyInstruction returns lines of each instruction of encode.go.
func everyInstruction() (lines []string) {
	for _, r := range [][3]vec{{0, 1, 2}, {31, 17, 5}, {8, 30, 31}} {
		for name := range binaries {
			lines = append(lines, binary(name, r[0], r[1], r[2]))
		}
		for name := range unaries {
			lines = append(lines, unary(name, r[0], r[1]))
		}
		for name := range signs {
			lines = append(lines, sign(name, r[0], r[1]))
		}
		for lane := range lanes {
			lines = append(lines, multiplyLane(r[0], r[1], r[2], lane))
		}
		lines = append(lines, maximumOfLanes(r[0], r[1]), andNot(r[0], r[1], r[2]))
	}
	return lines
}

// TestFrame holds where parameters and results of every kind lie.
func TestFrame(t *testing.T) {
	f := newFunction("f", "func(x, y []float32, a, b float32, n uint64, p *float32, w uint32) "+
		"(first, second float32)", "")
	for name, want := range map[string]int{"x_base": 0, "x_len": 8, "y_base": 24, "a": 48, "b": 52,
		"n": 56, "p": 64, "w": 72, "first": 80, "second": 84} {
		if got := f.frame[name].offset; got != want {
			t.Errorf("%s lies at %d, want %d", name, got, want)
		}
	}
	if f.frameBytes != 88 {
		t.Errorf("the frame has %d bytes, want 88", f.frameBytes)
	}
	if f := newFunction("f", "func(x []float32, s float32)", ""); f.frameBytes != 28 {
		t.Errorf("a frame without results has %d bytes, want 28", f.frameBytes)
	}
}
