package message

import (
	"bytes"
	"strings"
	"testing"
)

// TestWriter: nothing on a screen is wider than it but a single word; an error is whole; bars
// pass.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, "gdb")
	long := strings.Repeat("some words of a note, ", 30)
	path := "/" + strings.Repeat("x", 100)
	for _, s := range []string{"short\n", long + "\n", "gdb: " + long + "end\n", path + "\n",
		"\r 10% of a bar " + long} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("%d of %d, %v", n, len(s), err)
		}
	}
	text, bar, _ := strings.Cut(out.String(), "\r")
	if !strings.HasSuffix(bar, long) {
		t.Errorf("a bar is %q", bar)
	}
	if !strings.Contains(text, "end\n") || strings.Count(text, "…") != 1 {
		t.Errorf("not whole, or not cut:\n%s", text)
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, " \n"))); n > 80 && !strings.HasPrefix(line,
			"/x") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
