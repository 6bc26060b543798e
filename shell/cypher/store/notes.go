package store

import (
	"slices"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/shell/cypher/ast"
)

// warnDates warns of conditions that compare a column of dates or times with a text, or dates with
// times. Such a comparison is null, so that no row passes, and is hardly ever meant.
func (s *store) warnDates(q *ast.Query) {
	for _, single := range q.Singles {
		for _, c := range single.Clauses {
			switch c := c.(type) {
			case *ast.Match:
				s.warnDatesIn(c.Where)
			case *ast.Project:
				s.warnDatesIn(c.Where)
			}
		}
	}
}

// warnDatesIn does it for a condition and its parts.
func (s *store) warnDatesIn(x ast.Expr) {
	if c, ok := x.(*ast.Compare); ok {
		for i := range c.Ops {
			s.warnDate(c.Xs[i], c.Xs[i+1])
			s.warnDate(c.Xs[i+1], c.Xs[i])
		}
	}
	if x != nil {
		for _, part := range ast.Children(x) {
			s.warnDatesIn(part)
		}
	}
}

// warnDate warns if the first is a column of dates or times, and the second a text, or a time or
// date.
func (s *store) warnDate(x, than ast.Expr) {
	prop, ok := x.(*ast.Prop)
	if !ok {
		return
	}
	calls := map[string]string{columnfile.Date: "date", columnfile.Timestamp: "datetime"}
	wants := calls[s.typeOf(prop.Key)]
	if wants == "" {
		return
	}
	switch than := than.(type) {
	case *ast.Literal:
		if text, is := than.Value.(string); is {
			s.x.Warn("%s is compared with a text, which no %s equals or comes before: write "+
				"%[2]s('%[3]s')", prop.Key, wants, text)
		}
	case *ast.Call:
		if than.Name != wants && slices.Contains([]string{"date", "datetime", "localdatetime"},
			than.Name) {
			s.x.Warn("%s is a %s, which no %s equals or comes before: write %[2]s(…)", prop.Key,
				wants, than.Name)
		}
	}
}

// typeOf returns the type that all columns of a name have; "" if they differ, or there are none.
func (s *store) typeOf(key string) (typ string) {
	columns := [][]kv.TableColumn{}
	for _, t := range s.meta.NodeTypes {
		columns = append(columns, t.Columns)
	}
	for _, t := range s.meta.EdgeTables {
		columns = append(columns, t.Columns)
	}
	for _, of := range columns {
		for _, c := range of {
			if c.Name != key {
				continue
			}
			if typ != "" && c.Type != typ {
				return ""
			}
			typ = c.Type
		}
	}
	return typ
}
