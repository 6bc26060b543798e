package blockdev

import (
	"testing"
	"time"
)

// TestPacedServes: each read takes the longer of what its number and its bytes take, after those
// before it, and a large one counts as several.
func TestPacedServes(t *testing.T) {
	d := &paced{pace: Pace{Reads: 10, Bytes: 1 << 20}}
	now := time.Unix(100, 0)
	for i, c := range []struct {
		sizes []int
		after time.Duration // now
		want  time.Duration // from the beginning
	}{
		{[]int{512}, 0, 100 * time.Millisecond},
		{[]int{512, 4096}, 0, 300 * time.Millisecond},
		{[]int{1 << 20}, 0, 1300 * time.Millisecond},
		{[]int{PacedRead}, 5 * time.Second, 5250 * time.Millisecond},
		{nil, 6 * time.Second, 6 * time.Second},
	} {
		var reqs []Request
		for _, size := range c.sizes {
			reqs = append(reqs, Request{Buf: make([]byte, size)})
		}
		got := d.serve(reqs, now.Add(c.after)).Sub(now)
		if got.Round(time.Microsecond) != c.want {
			t.Errorf("%d: done after %s, want %s", i, got, c.want)
		}
	}
	few := &paced{pace: Pace{Reads: 2}}
	if got := few.serve([]Request{{Buf: make([]byte, 3*PacedRead)}}, now).Sub(now); got !=
		1500*time.Millisecond {
		t.Errorf("three reads of 2 a second take %s", got)
	}
}

// TestPacedKeepsItsOwnProfile: a paced device has another name than the one below it.
func TestPacedKeepsItsOwnProfile(t *testing.T) {
	below, err := Open(Options{Backend: Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	if d := Paced(below, Pace{}); d != below {
		t.Error("a device without a pace is another one")
	}
	names := map[Backend]bool{below.Info().Backend: true}
	for _, p := range []Pace{{Reads: 2000}, {Bytes: 2000}, {Reads: 2000, Bytes: 5e8}} {
		names[Paced(below, p).Info().Backend] = true
	}
	if len(names) != 4 {
		t.Errorf("names %v", names)
	}
}
