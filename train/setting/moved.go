package setting

import (
	"cmp"
	"fmt"
)

// ProductsAMX as Node.Products sums products of bfloat16 up in the order of AMX's tiles.
const ProductsAMX = "amx"

// ResolveProducts sets what products are computed with on this machine, which may multiply in
// tiles; Backend is not auto.
func (c *Node) ResolveProducts(tiles bool) {
	c.Products = ""
	if tiles && c.Half() && c.Backend == BackendCPU {
		c.Products = ProductsAMX
	}
}

// Moved says what a resumed run computes with now, by which its result differs, and did not before;
// "" for nothing.
func (c *Node) Moved(old *Node) string {
	now, before := cmp.Or(c.Precision, Float32), cmp.Or(old.Precision, Float32)
	from, to := "", ""
	switch {
	case now != before:
		from, to = "in "+before, "in "+now
	case c.Backend != old.Backend:
		from, to = "on "+old.Backend, "with "+c.Backend
	case c.Parts() != old.Parts():
		from = "on device " + FormatDevices(old.Devices())
		to = "on " + FormatDevices(c.Devices())
	case c.Products != old.Products:
		from = "with products by " + cmp.Or(old.Products, "vectors")
		to = "by " + cmp.Or(c.Products, "vectors")
	default:
		return ""
	}
	return fmt.Sprintf("the run began %s and goes on %s: what it comes to differs by rounding",
		from, to)
}
