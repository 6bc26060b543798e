package mem

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40}, {"pib", 1 << 50},
	{"eib", 1 << 60},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1},
}

// ParseSize parses sizes such as 4096, 64KiB, 2GB and 1e6; case does not matter.
func ParseSize(s string) (int64, error) {
	num, unit := strings.ToLower(strings.TrimSpace(s)), 1.0
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(num, u.suffix); ok {
			num, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || v < 0 || math.IsNaN(v) || v*unit > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not a size such as 64KiB, 2GB or 1e6", s)
	}
	return int64(v * unit), nil
}

// FormatSize formats bytes with the binary unit that fits: 4.0 KiB, 1.2 GiB.
func FormatSize(n int64) string {
	const units = "KMGTPE"
	if n < 1024 && n > -1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1024, 0
	// What would be rounded to 1024.0 is written as 1.0 of the next unit.
	for ; math.Abs(v) >= 1023.95 && i < len(units)-1; i++ {
		v /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// Sized returns s with length n, or a new slice without room to spare if s is too small: for memory
// that is planned to the byte. Its contents are undefined.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Resized returns s with length n, or a new slice with an eighth to spare if s is too small. Its
// contents are undefined.
func Resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/8)
	}
	return s[:n]
}
