package bf16

import (
	"fmt"
	"strings"
)

// ChoiceText says what products of bfloat16 are computed with on this processor, and why.
func ChoiceText(c Choice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "products of bf16 on the CPU: %s", c.Rates[0].Level)
	if len(c.Rates) > 1 {
		fmt.Fprintf(&b, ", %.0f GFLOP/s a thread", c.Rates[0].GFLOPS)
		for _, r := range c.Rates[1:] {
			fmt.Fprintf(&b, "; %s %.0f", r.Level, r.GFLOPS)
		}
		switch {
		case c.Kept:
			b.WriteString(" (measured once on this machine)")
		case c.NotKept != nil:
			fmt.Fprintf(&b, " (measured now, not kept: %v)", c.NotKept)
		default:
			b.WriteString(" (measured now, and kept)")
		}
	}
	if c.NoAMX != nil {
		fmt.Fprintf(&b, "; not AMX: %v", c.NoAMX)
	}
	return b.String()
}
