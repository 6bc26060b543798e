package bf16

import (
	"encoding/hex"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdb/internal/expect"
)

// encoded is a line of an instruction that Go's assembler does not know: its bytes, and its name.
var encoded = regexp.MustCompile(`LONG \$0x([0-9a-f]{8}); WORD \$0x([0-9a-f]{4}) // (.*)`)

// TestEncodings has a disassembler read all instructions that the generator wrote as bytes.
func TestEncodings(t *testing.T) {
	var code []byte
	var want []string
	for _, file := range []string{"convert_amd64.s", "pairs_amd64.s", "elements_amd64.s"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range encoded.FindAllStringSubmatch(string(text), -1) {
			code = append(append(code, backwards(t, m[1])...), backwards(t, m[2])...)
			want = append(want, inATT(m[3]))
		}
	}
	if len(want) < 100 {
		t.Fatalf("%d instructions were found", len(want))
	}
	expect.Disassembly(t, code, want)
}

// backwards returns the bytes of a number as memory has them.
func backwards(t *testing.T, number string) []byte {
	b, err := hex.DecodeString(number)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(b)
	return b
}

// inATT writes an instruction of Go's assembler as objdump does.
func inATT(s string) string {
	name, operands, _ := strings.Cut(strings.ToLower(s), " ")
	for _, v := range []string{"x", "y", "z"} {
		operands = strings.ReplaceAll(operands, v, "%"+v+"mm")
	}
	return name + " " + strings.ReplaceAll(operands, ", ", ",")
}
