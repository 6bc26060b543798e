package kv

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestUUIDText(t *testing.T) {
	u := UUID{0xab, 15: 0x01}
	b, err := json.Marshal(u)
	if err != nil || string(b) != `"ab000000000000000000000000000001"` {
		t.Fatalf("%s, %v", b, err)
	}
	var got UUID
	if err := json.Unmarshal(b, &got); err != nil || got != u {
		t.Errorf("%s came back as %v, %v", b, got, err)
	}
	for _, s := range []string{"", "ab", "zz000000000000000000000000000001"} {
		if err := new(UUID).UnmarshalText([]byte(s)); err == nil {
			t.Errorf("%q was taken as a UUID", s)
		}
	}
}

func TestPartBounds(t *testing.T) {
	m := Meta{Nodes: 7, Partitions: []Partition{{Nodes: 3}, {}, {First: 3, Nodes: 4}}}
	if got := m.PartBounds(); !slices.Equal(got, []uint64{0, 3, 3, 7}) {
		t.Errorf("bounds %v", got)
	}
}
