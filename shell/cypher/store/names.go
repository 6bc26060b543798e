package store

import (
	"slices"

	"gdb/kv"
)

// Names are what statements may call the parts of a store.
type Names struct{ Labels, Types, Properties []string }

// NamesOf returns the names of a store, each once, in its order.
func NamesOf(m *kv.Meta) (n Names) {
	s := &store{meta: m}
	n.Labels, n.Properties = s.labels(), s.propertyNames()
	for i, name := range m.EdgeTypes {
		n.Types = append(n.Types, relationName(m, i, name))
	}
	if len(n.Types) == 0 {
		n.Types = []string{anyType}
	}
	for _, t := range m.EdgeTables {
		for _, c := range t.Columns {
			n.Properties = append(n.Properties, c.Name)
		}
	}
	for _, p := range []struct {
		name string
		has  bool
	}{{"weight", m.Weighted}, {"time", m.Timestamped}} {
		if p.has {
			n.Properties = append(n.Properties, p.name)
		}
	}
	n.Types, n.Properties = once(n.Types), once(n.Properties)
	return n
}

// once returns names without those that stood before.
func once(names []string) (out []string) {
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
