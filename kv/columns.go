package kv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Columns knows the names of the columns of a file of features.
type Columns struct {
	named []ColumnMeta
	dim   int
}

// FeatureColumns returns the columns of one of the store's features.
func (m *Meta) FeatureColumns(features RowsMeta) Columns {
	return Columns{named: m.FeatureNames[features.Name], dim: features.Dim}
}

// Named reports whether the source had names for the columns.
func (c Columns) Named() bool { return len(c.named) > 0 }

// Names returns the names of all columns, in order: the source's name, NAME[k] for number k of a
// list, or fI for column I of a source without names.
func (c Columns) Names() []string {
	names := make([]string, 0, c.dim)
	for _, n := range c.named {
		if n.Dim == 0 {
			names = append(names, n.Name)
		}
		for k := range n.Dim {
			names = append(names, fmt.Sprintf("%s[%d]", n.Name, k))
		}
	}
	for i := len(names); i < c.dim; i++ {
		names = append(names, "f"+strconv.Itoa(i))
	}
	return names
}

// Index finds a column by its name. fI finds column I too, unless the source gives that name to
// another column.
func (c Columns) Index(name string) (i int, found bool) {
	if at := slices.Index(c.Names(), name); at >= 0 {
		return at, true
	}
	digits, numbered := strings.CutPrefix(name, "f")
	i, err := strconv.Atoi(digits)
	if !numbered || err != nil || i < 0 || i >= c.dim || strconv.Itoa(i) != digits {
		return 0, false
	}
	return i, true
}

// Sources returns the names of the columns of the source, where a list is one column: NAME, or
// NAME[N] for a list of N numbers.
func (c Columns) Sources() (names []string) {
	for _, n := range c.named {
		if n.Dim > 0 {
			names = append(names, fmt.Sprintf("%s[%d]", n.Name, n.Dim))
			continue
		}
		names = append(names, n.Name)
	}
	return names
}

// checkFeatureNames fails unless all names belong to features of the store and all columns of these
// features have a name.
func (m *Meta) checkFeatureNames() error {
	for name, named := range m.FeatureNames {
		at := slices.IndexFunc(m.Features, func(r RowsMeta) bool { return r.Name == name })
		if at < 0 {
			return fmt.Errorf("names of columns of features %q, which are not there", name)
		}
		left := m.Features[at].Dim
		for _, n := range named {
			if n.Dim < 0 || max(n.Dim, 1) > left {
				return fmt.Errorf("features %q have %d columns, and more names",
					name, m.Features[at].Dim)
			}
			left -= max(n.Dim, 1)
		}
		if left > 0 {
			return fmt.Errorf("features %q: %d of %d columns have no name", name, left,
				m.Features[at].Dim)
		}
	}
	return nil
}
