package runs

import (
	"strings"
	"testing"
)

// TestStale adds what two steps read up, and prints it behind an epoch.
func TestStale(t *testing.T) {
	s := Stale{States: 3, Sum: 4, Most: 3, Missing: 1}
	s.Add(Stale{States: 5, Sum: 8, Most: 2, Missing: 1})
	want := "  states 1.5 epochs old, at most 3, 20.0 % missing"
	if got := (Epoch{Stale: &s}).String(); !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at the end", got, want)
	}
}
