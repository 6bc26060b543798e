package runs

import (
	"cmp"
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/kernel/bf16"
)

// ResolveProducts sets what products are computed with on this machine; Backend is not auto.
func (c *Settings) ResolveProducts() {
	c.Products = ""
	if c.Half() && c.Backend == backend.CPU && bf16.Level() == bf16.AMX {
		c.Products = bf16.AMX
	}
}

// Moved says what a resumed run computes with now, by which its result differs, and did not before;
// "" for nothing.
func (c *Settings) Moved(old *Settings) string {
	now, before := cmp.Or(c.Precision, Float32), cmp.Or(old.Precision, Float32)
	from, to := "", ""
	switch {
	case now != before:
		from, to = "in "+before, "in "+now
	case c.Backend != old.Backend:
		from, to = "on "+old.Backend, "with "+c.Backend
	case c.Products != old.Products:
		from = "with products by " + cmp.Or(old.Products, "vectors")
		to = "by " + cmp.Or(c.Products, "vectors")
	default:
		return ""
	}
	return fmt.Sprintf("the run began %s and goes on %s: what it comes to differs by rounding",
		from, to)
}
