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

func typedMeta() *Meta {
	return &Meta{Format: TypedVersion, Nodes: 7, IDs: IDsMeta{Kind: IDsString},
		NodeTypes: []NodeTypeMeta{{Name: "a", Nodes: 2}, {Name: "none", First: 2},
			{Name: "b", First: 2, Nodes: 5}, {Name: "end", First: 7}},
		EdgeTypes: []string{"r", "s"}, Relations: []RelationMeta{{0, 2}, {2, 2}}}
}

func TestTypeOf(t *testing.T) {
	m := typedMeta()
	var got []int
	for v := range m.Nodes {
		got = append(got, m.TypeOf(NodeID(v)))
	}
	if want := []int{0, 0, 2, 2, 2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("types %v, want %v", got, want)
	}
}

func TestCheckTypes(t *testing.T) {
	if err := typedMeta().Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(m *Meta){
		"a gap":             func(m *Meta) { m.NodeTypes[2].First = 3 },
		"an overlap":        func(m *Meta) { m.NodeTypes[2].First = 1 },
		"too many":          func(m *Meta) { m.NodeTypes[2].Nodes = 6 },
		"too few":           func(m *Meta) { m.Nodes = 8 },
		"no relation":       func(m *Meta) { m.Relations = m.Relations[:1] },
		"a negative type":   func(m *Meta) { m.Relations[0].Src = -1 },
		"a type of nothing": func(m *Meta) { m.Relations[1].Dst = 4 },
	} {
		m := typedMeta()
		if spoil(m); m.Check() == nil {
			t.Errorf("%s was taken", name)
		}
		if m.Format = FormatVersion; m.Check() != nil && name != "too few" {
			t.Errorf("%s of a store that is not typed is refused: %v", name, m.Check())
		}
	}
}
