package mem

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStatusField(t *testing.T) {
	const status = "Name:\tgdb\nVmHWM:\t   2048 kB\nVmRSS:\t  1024 kB\nEmpty:\nBad:\tx kB\n"
	for name, want := range map[string]int64{"VmRSS:": 1 << 20, "VmHWM:": 2 << 20, "None:": 0,
		"Bad:": 0} {
		if got := statusField(status, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

func TestReadInt(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]int64{"123\n": 123, "max\n": 0, "": 0, "-5": 0,
		"9223372036854771712\n": 0, "18446744073709551615": 0} {
		path := filepath.Join(dir, "limit")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, ok := readInt(path); got != want || ok != (want > 0) {
			t.Errorf("%q is %d, %v, want %d", text, got, ok, want)
		}
	}
	if _, ok := readInt(filepath.Join(dir, "none")); ok {
		t.Error("a missing file has a value")
	}
}

func TestAvailable(t *testing.T) {
	machine := machineBytes()
	if machine == 0 {
		t.Skip("there is no /proc/meminfo here")
	}
	if got := Available(); got <= 0 || got > machine {
		t.Errorf("available are %d bytes of %d", got, machine)
	}
}

// TestRSS: memory that is touched is counted, and the peak stays when it is given back.
func TestRSS(t *testing.T) {
	before, _ := RSS()
	if before == 0 {
		t.Skip("there is no /proc/self/status here")
	}
	const size = 64 << 20
	a, err := NewArena(nil, "test", size)
	if err != nil {
		t.Fatal(err)
	}
	p := a.Bytes()
	for i := 0; i < len(p); i += 4096 {
		p[i] = 1
	}
	during, _ := RSS()
	if err := a.Free(); err != nil {
		t.Fatal(err)
	}
	after, peak := RSS()
	if during < before+size/2 || after > during-size/2 || peak < during-size/8 {
		t.Errorf("resident %d, then %d, then %d, at most %d", before, during, after, peak)
	}
}
