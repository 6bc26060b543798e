package amx

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"gdb/internal/expect"
)

var (
	encodedLine = regexp.MustCompile(`(?m)^\t((?:BYTE \$0x[0-9a-f]{2}; )+)// (.*)$`)
	encodedByte = regexp.MustCompile(`0x([0-9a-f]{2})`)
)

// TestEncodings has a disassembler read all instructions that the generator wrote as bytes.
func TestEncodings(t *testing.T) {
	text, err := os.ReadFile("blocks_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	var code []byte
	var want []string
	for _, m := range encodedLine.FindAllStringSubmatch(string(text), -1) {
		for _, b := range encodedByte.FindAllStringSubmatch(m[1], -1) {
			n, err := strconv.ParseUint(b[1], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			code = append(code, byte(n))
		}
		want = append(want, m[2])
	}
	if len(want) < 20 {
		t.Fatalf("%d instructions were found", len(want))
	}
	expect.Disassembly(t, code, want)
}
