package message

import (
	"testing"

	"pgregory.net/rapid"
)

// plain returns the distance by its definition.
func plain(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	replace := plain(a[1:], b[1:])
	if a[0] == b[0] {
		return replace
	}
	return 1 + min(replace, plain(a[1:], b), plain(a, b[1:]))
}

func TestDistance(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := Distance(a, b), plain(a, b); got != want {
			t.Errorf("from %q to %q: %d, want %d", a, b, got, want)
		}
	})
}
