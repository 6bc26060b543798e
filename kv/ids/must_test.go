package ids

import "testing"

// flipPlaces is how many random bytes the flip tests try, each with one of its bits.
const flipPlaces = 200

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
