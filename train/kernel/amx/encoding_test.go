package amx

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	encodedLine = regexp.MustCompile(`(?m)^\t((?:BYTE \$0x[0-9a-f]{2}; )+)// (.*)$`)
	encodedByte = regexp.MustCompile(`0x([0-9a-f]{2})`)
)

// TestEncodings has a disassembler read all instructions that the generator wrote as bytes.
func TestEncodings(t *testing.T) {
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("no objdump (binutils) to read the encodings with")
	}
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
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-Dw", "-b", "binary", "-m", "i386:x86-64", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
			got = append(got, strings.Join(strings.Fields(f[2]), " "))
		}
	}
	if !strings.Contains(string(out), "tileloadd") && strings.Contains(string(out), "(bad)") {
		t.Skip("this objdump does not know the instructions")
	}
	if !slices.Equal(got, want) {
		t.Fatalf("objdump reads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
