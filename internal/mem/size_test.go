package mem

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "1": 1, "4096": 4096, "1e6": 1e6, "64KiB": 64 << 10, "64kib": 64 << 10,
		"2GB": 2e9, "1gb": 1e9, "3mb": 3e6, "7kB": 7000, "1TiB": 1 << 40, "2tb": 2e12,
		"512MiB": 512 << 20, " 8 GiB ": 8 << 30, "1.5GiB": 3 << 29, "4k": 4096, "4K": 4096,
		"2m": 2 << 20, "1G": 1 << 30, "1T": 1 << 40, "100B": 100, "12b": 12, "0.5KiB": 512,
	} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "-1", "-5MiB", "GiB", "1 2", "1KiBB", "NaN", "nan", "inf",
		"1e30", "9e18", "16000000TiB", "0x", "1,5GiB", "1QiB"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", s, got)
		} else if !strings.Contains(err.Error(), "is not a size") {
			t.Errorf("ParseSize(%q): %v does not say so", s, err)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", -1024: "-1.0 KiB", 4096: "4.0 KiB",
		1536: "1.5 KiB", 1 << 20: "1.0 MiB", 5 << 28: "1.2 GiB", 1 << 40: "1.0 TiB",
		math.MaxInt64: "8.0 EiB", 1<<20 - 1: "1.0 MiB", 1 << 30: "1.0 GiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestSizeRoundTrip: what FormatSize writes, ParseSize reads, within the digits that it shows.
func TestSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<60).Draw(t, "bytes") >> rapid.IntRange(0, 60).Draw(t, "shift")
		got, err := ParseSize(FormatSize(n))
		if err != nil || math.Abs(float64(got-n)) > 0.06*float64(n) {
			t.Fatalf("%d became %s, and then %d, %v", n, FormatSize(n), got, err)
		}
	})
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"64KiB", "1e6", "", "-1", "9999999999TiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseSize(s); err == nil && n < 0 {
			t.Fatalf("ParseSize(%q) = %d", s, n)
		}
	})
}
