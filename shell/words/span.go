package words

import "fmt"

// DegreeBin names bin i of a degree histogram; see kv.GraphStats.
func DegreeBin(i int) string {
	if i == 0 {
		return "0"
	}
	return Span(1<<(i-1), 1<<i-1)
}

// Span returns a name for the numbers from lo to hi.
func Span(lo, hi uint64) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d..%d", lo, hi)
}
