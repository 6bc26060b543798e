package source

import (
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// isOfTyped reports whether tables of a typed store are read.
func (o *Options) isOfTyped() bool { return o.Of != nil && o.Of.Typed() }

// storedType returns a type of the store that tables are read for, or nil.
func (o *Options) storedType(typ string) *kv.NodeTypeMeta {
	if o.Of == nil {
		return nil
	}
	for i := range o.Of.NodeTypes {
		if t := &o.Of.NodeTypes[i]; t.Name == typ {
			return t
		}
	}
	return nil
}

// keyName returns the column of ids of a type of the store that tables are read for.
func (o *Options) keyName(typ string) string {
	if t := o.storedType(typ); t != nil {
		return t.KeyName
	}
	return ""
}

// storedNames returns the names of ids and of columns of edges of the store that tables are read
// for, as headers are compared.
func (o *Options) storedNames() (names []string) {
	if o.Of == nil {
		return nil
	}
	for _, t := range o.Of.NodeTypes {
		names = append(names, table.Usual(t.KeyName))
	}
	for r := range max(1, len(o.Of.Relations)) {
		for _, c := range o.Of.EdgeColumns(r) {
			names = append(names, table.Usual(c.Name))
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// storedRoles gives columns of a table the roles that they have in the store that it is read for.
func (s *typedGraph) storedRoles(o *Options, typ string) {
	of := s.opt.storedType(typ)
	if of == nil {
		return
	}
	if o.IDCol == "" {
		o.IDCol = of.KeyName
	}
	o.LabelCol, o.SplitCol = NoColumn, NoColumn
	opener := s.sub(o).tables
	opener.Note = func(string, ...any) {} // it is opened again
	t, err := opener.Open(o.Nodes, table.Hints{Known: nodeNames, Header: o.Header})
	if err != nil {
		return // what is wrong with the table is found when it is read
	}
	for c := range t.Width {
		switch name := t.Name(c); {
		case of.Roles[name] == "label":
			o.LabelCol = name
		case of.Roles[name] == "split":
			o.SplitCol = name
		}
	}
}

// checkStored fails if a table has a column that the type of a store does not have.
func (n *nodeTable) checkStored(of *kv.NodeTypeMeta) error {
	if of == nil {
		return nil
	}
	known := []string{}
	for _, c := range of.Columns {
		known = append(known, c.Name)
	}
	if of.Encoding != nil {
		for _, c := range of.Encoding.Columns {
			if c.List {
				known = append(known, c.Name)
			}
		}
	}
	for c := range n.Width {
		name := n.Name(c)
		if c != n.id && len(known) == 0 {
			return input.Wrong(n.Path, "leave it out of the file", "it has a column %s, and nodes "+
				"of type %s of the store have no columns", name, of.Name)
		}
		if c != n.id && !slices.Contains(known, name) {
			return input.Wrong(n.Path, "leave it out of the file", "it has a column %s, which "+
				"nodes of type %s of the store do not have: they have %s", name, of.Name,
				strings.Join(known, ", "))
		}
	}
	return nil
}
