package bf16

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// TestWithout runs products in processes that are told that the processor lacks instructions: their
// results have the same bits, and the level is the next one.
func TestWithout(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("this processor has one level, with nothing to lack")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for debug, level := range map[string]string{"cpu.all=off": "plain",
		"cpu.avx512bf16=off": without(t)} {
		if level == "" {
			continue
		}
		cmd := exec.Command(self, "-test.short", "-test.run",
			"^(TestProducts|TestBlocks|TestHeads|TestSegments|TestLevelIs)$")
		cmd.Env = append(os.Environ(), "GODEBUG="+debug, "GDB_TEST_LEVEL="+level)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("with %s: %v\n%s", debug, err, out)
		}
	}
}

// without returns the level of this processor without VDPBF16PS; "" if it has none.
func without(t *testing.T) string {
	all := levels()
	if all[len(all)-1].name != "avx512_bf16" {
		t.Log("the processor has no VDPBF16PS that a process could lack")
		return ""
	}
	return all[len(all)-2].name
}

// TestLevelIs is for TestWithout.
func TestLevelIs(t *testing.T) {
	want := os.Getenv("GDB_TEST_LEVEL")
	if want == "" {
		t.Skip("a part of TestWithout")
	}
	if Level() != want {
		t.Errorf("the level is %s, want %s", Level(), want)
	}
}
