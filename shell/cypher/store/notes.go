package store

import (
	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/shell/cypher/ast"
)

// warnDates warns of conditions that compare a column of dates or times with a text. Such a
// comparison is null, so that no row passes, and is hardly ever meant.
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

// warnDate warns if the first is a column of dates or times, and the second a text.
func (s *store) warnDate(x, than ast.Expr) {
	prop, ok := x.(*ast.Prop)
	literal, is := than.(*ast.Literal)
	if !ok || !is {
		return
	}
	text, is := literal.Value.(string)
	calls := map[string]string{columnfile.Date: "date", columnfile.Timestamp: "datetime"}
	if call := calls[s.typeOf(prop.Key)]; is && call != "" {
		s.x.Warn("%s is compared with a text, which no %s equals or comes before: write %s('%s')",
			prop.Key, call, call, text)
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
