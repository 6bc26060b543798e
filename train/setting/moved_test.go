package setting

import (
	"strings"
	"testing"
)

// TestMoved: what a resumed run computes with and did not before is said.
func TestMoved(t *testing.T) {
	old := Node{Place: Place{Computing: Computing{Backend: BackendCPU},
		Precision: BFloat16}}
	for want, change := range map[string]func(*Node){
		"":                             func(*Node) {},
		"on cpu and goes on with cuda": func(c *Node) { c.Backend = BackendCUDA },
		"in bf16 and goes on in f32":   func(c *Node) { c.Precision = "" },
		"with products by vectors and goes on by amx": func(c *Node) { c.Products = ProductsAMX },
	} {
		now := old
		change(&now)
		if got := now.Moved(&old); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
