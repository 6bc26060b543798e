package expect

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Disassembly compares what objdump reads in code, one instruction per entry, with want. It skips
// the test if there is no objdump, or if objdump does not know the first instruction.
func Disassembly(t *testing.T, code []byte, want []string) {
	t.Helper()
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("no objdump (binutils) to read the encodings with")
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o644); err != nil { //lint:os another program reads it
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
	if strings.Contains(strings.Join(got, " "), "(bad)") && !slices.Contains(got, want[0]) {
		t.Skip("this objdump does not know the instructions")
	}
	if !slices.Equal(got, want) {
		t.Fatalf("objdump reads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
