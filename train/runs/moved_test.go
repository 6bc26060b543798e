package runs

import (
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/kernel/bf16"
)

// TestMoved: what a resumed run computes with and did not before is said.
func TestMoved(t *testing.T) {
	old := Settings{Backend: backend.CPU, Precision: BFloat16}
	for want, change := range map[string]func(*Settings){
		"":                             func(*Settings) {},
		"on cpu and goes on with cuda": func(c *Settings) { c.Backend = backend.CUDA },
		"in bf16 and goes on in f32":   func(c *Settings) { c.Precision = "" },
		"with products by vectors and goes on by amx": func(c *Settings) { c.Products = bf16.AMX },
	} {
		now := old
		change(&now)
		if got := now.Moved(&old); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
