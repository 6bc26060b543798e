package source

import (
	"context"
	"fmt"
	"slices"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// edgeRole is what a column of a table of edges can be.
type edgeRole struct {
	flag, value string // of the command line
	names       []string
	col         *int
	what        string
}

// edgeColumns finds the columns: by flag, else by name, else the first two.
func (s *textGraph) edgeColumns(ctx context.Context, t *edgeTable) error {
	roles := []edgeRole{{"--src-col", s.opt.SrcCol, srcNames, &t.src, "source"},
		{"--dst-col", s.opt.DstCol, dstNames, &t.dst, "destination"},
		{"--rel-col", s.opt.RelCol, relNames, &t.rel, "type"},
		{"--weight-col", s.opt.WeightCol, weightNames, &t.weight, "weight"},
		{"--time-col", s.opt.TimeCol, TimeNames, &t.time, "time"}}
	if err := s.flaggedColumns(t, roles); err != nil {
		return err
	}
	var taken []int
	for _, r := range roles {
		taken = append(taken, *r.col)
	}
	for _, r := range roles {
		if r.value == "" {
			*r.col = t.Named(r.names, taken...)
			taken = append(taken, *r.col)
		}
	}
	s.doubtTypes(t)
	t.endsByType()
	if err := s.chooseEnds(t); err != nil {
		return err
	}
	if err := s.askKinds(t); err != nil {
		return err
	}
	if t.Names == nil && t.Width > 2 && s.opt.SrcCol+s.opt.DstCol == "" && s.info.Format == "csv" {
		do := "--src-col and --dst-col choose others"
		if t.Width == 3 && !t.All(2, table.IsNumber) {
			do = "of heads, relations and tails say --rel-col 1 --dst-col 2"
		}
		s.note("%s: no header: column 0 is the source, column 1 the destination; "+do, t.Path)
	}
	if s.info.Format == "snap" && t.Width == 3 && t.rel < 0 && t.weight < 0 && t.time < 0 &&
		t.src < 2 && t.dst < 2 {
		s.thirdColumn(t)
	}
	known := map[int]string{}
	for _, r := range roles {
		known[*r.col] = r.what
	}
	s.listColumns(t.Table, known)
	if err := s.readsAs(ctx, t.Table, t.weight, input.Float, "--weight-col"); err != nil {
		return err
	}
	return s.readsAs(ctx, t.Table, t.time, input.Time, "--time-col")
}

// flaggedColumns finds the columns that flags name; the others are -1.
func (s *textGraph) flaggedColumns(t *edgeTable, roles []edgeRole) (err error) {
	for i, r := range roles {
		*r.col = -1
		if r.value == "" || isNone(t.Table, r.value) && i > 1 {
			continue
		}
		if *r.col, err = t.Column(r.flag, r.value); err != nil {
			return s.edgesExchanged(t.Table, err)
		}
		for _, other := range roles[:i] {
			if *other.col == *r.col && !(i == 1 && other.flag == "--src-col") {
				return input.Usage("%s and %s both name the column %s: a column has one role",
					other.flag, r.flag, t.Name(*r.col))
			}
		}
	}
	return nil
}

// isNone reports whether a flag's value means no column.
func isNone(t *table.Table, value string) bool {
	return value == NoColumn && !slices.Contains(t.Names, NoColumn)
}

// chooseEnds takes columns without a role for the ends that nothing names. Where there are more
// than are needed in a table with names, it asks.
func (s *textGraph) chooseEnds(t *edgeTable) error {
	which := &input.Error{Where: t.Path, What: "which columns are source and destination?",
		Do: "name them with --src-col and --dst-col"}
	if s.keeps {
		which.Do = fmt.Sprintf("name them with --src-col %[1]s.COLUMN and --dst-col %[1]s.COLUMN",
			t.relation)
	}
	free, need := s.freeEnds(t), 0
	for _, end := range []int{t.src, t.dst} {
		if end < 0 {
			need++
		}
	}
	if len(free) < need {
		s.giveUpRoles(t)
		free = slices.DeleteFunc([]int{0, 1}, t.hasRole)
	}
	if t.Names != nil && need > 0 && len(free) > need && !s.isOfNodes(t) {
		which.Flag = true
		which.What = fmt.Sprintf("which columns are source and destination? No usual name says "+
			"it; the columns are %s", table.Few(t.Names))
		if need == 1 {
			s.askOneEnd(t, which)
		}
		return which
	}
	if t.Names == nil && len(free) > 0 && (t.dst < 0 && t.src > free[0] ||
		t.src < 0 && t.dst >= 0 && t.dst < free[0]) {
		return which // a flag names one end, out of the order of columns
	}
	for _, end := range []*int{&t.src, &t.dst} {
		if *end < 0 && len(free) > 0 {
			*end, free = free[0], free[1:]
		}
	}
	if t.src < 0 || t.dst < 0 || t.src == t.dst {
		return which
	}
	for _, c := range []int{t.rel, t.weight, t.time} {
		if c == t.src && s.opt.SrcCol == "" || c == t.dst && s.opt.DstCol == "" {
			return which
		}
	}
	return nil
}

// askOneEnd asks for the end that is not known.
func (s *textGraph) askOneEnd(t *edgeTable, which *input.Error) {
	end, flag, known, other := "source", "--src-col", t.dst, "destination"
	if t.src >= 0 {
		end, flag, known, other = "destination", "--dst-col", t.src, "source"
	}
	which.What = fmt.Sprintf("which column is the %s? No usual name says it; the %s is %s, and "+
		"the columns are %s", end, other, t.Name(known), table.Few(t.Names))
	which.Do = "name it with " + flag
	if s.keeps {
		which.Do += fmt.Sprintf(" %s.COLUMN", t.relation)
	}
}

// endsByType takes columns for the ends that nothing else names: those called as the ids in the
// tables of the ends, if the two differ, and those whose names tell the types of the ends, as
// user_id does of user.
func (t *edgeTable) endsByType() {
	for _, end := range []struct {
		col     *int
		typ, id string
	}{{&t.src, t.srcType, t.srcID}, {&t.dst, t.dstType, t.dstID}} {
		if c := slices.Index(t.Names, end.id); *end.col < 0 && c >= 0 && end.id != "" &&
			t.srcID != t.dstID && !t.hasRole(c) {
			*end.col = c
		}
		for c, name := range t.Names {
			if *end.col < 0 && end.typ != "" && !t.hasRole(c) && sameKind(kindOf(name), end.typ) {
				*end.col = c
			}
		}
	}
}

// isOfNodes reports whether a table that was given for edges is one of nodes, about which there is
// a better error later: the table of --nodes has edges, or files of edges before it have other
// columns.
func (s *textGraph) isOfNodes(t *edgeTable) bool {
	if t.Named(idNames) < 0 {
		return false
	}
	if len(s.edges) > 0 && t.Strange(s.edges[0].Table) {
		return true
	}
	if s.nodesFile == "" {
		return false
	}
	nodes, err := s.openNodesOnce(s.nodesFile)
	return err == nil && nodes.Named(srcNames) >= 0 && nodes.Named(dstNames) >= 0
}

// freeEnds returns the columns that may be ends of edges, in their frame's order. An index without
// a name is none, nor a column that has a role, nor one with fractions, such as pandas writes
// before the names of groups.
func (s *textGraph) freeEnds(t *edgeTable) (free []int) {
	for _, c := range t.Order() {
		switch {
		case t.Unnamed(c):
			s.note("%s: the column %s, which has no name, is an index, and not read", t.Path,
				t.Name(c))
		case t.hasRole(c), t.Fractions(c), t.Names != nil && t.Names[c] == "":
		default:
			free = append(free, c)
		}
	}
	return free
}

// hasRole reports whether a column has a role.
func (t *edgeTable) hasRole(c int) bool {
	return slices.Contains([]int{t.src, t.dst, t.rel, t.weight, t.time}, c)
}

// giveUpRoles takes the first two columns for the ends alone, but for what a flag says of them.
func (s *textGraph) giveUpRoles(t *edgeTable) {
	for _, role := range []struct {
		given string
		col   *int
	}{{s.opt.RelCol, &t.rel}, {s.opt.WeightCol, &t.weight}, {s.opt.TimeCol, &t.time}} {
		if role.given == "" && *role.col < 2 {
			*role.col = -1
		}
	}
}

// typesDoubted is how many types of edges in the first rows are more than a column is believed to
// have that was not named by a flag.
const typesDoubted = 200

// doubtTypes takes a column for something else than types if nearly every row has one of its own.
func (s *textGraph) doubtTypes(t *edgeTable) {
	if t.rel < 0 || s.opt.RelCol != "" {
		return
	}
	seen := map[string]bool{}
	for _, r := range t.Sample {
		seen[r[t.rel]] = true
	}
	if len(seen) > typesDoubted && 2*len(seen) > len(t.Sample) {
		s.note("%s: the column %s has %d values in %d rows, too many for types of edges, and is "+
			"kept as a column; --rel-col %s reads types from it", t.Path, t.Names[t.rel], len(seen),
			len(t.Sample), t.Names[t.rel])
		t.rel = -1
	}
}

// thirdColumn takes the third column of an edge list without names.
func (s *textGraph) thirdColumn(t *edgeTable) {
	switch {
	case t.All(2, table.IsSigned):
		t.time = 2
		s.note("%s: the third column is read as time; --weight-col 2 reads it as weight", t.Path)
	case t.All(2, table.IsNumber):
		t.weight = 2
		s.note("%s: the third column is read as weight", t.Path)
	}
}

// leaveOut returns the advice about a column that was taken by its name and does not read.
func leaveOut(flag string) string { return flag + " " + NoColumn + " leaves the column out" }

// readsAs returns an error that names the row if one of the first values of a column is not of the
// kind of its role. Where bad rows may be skipped, the reading of all rows finds them.
func (s *parts) readsAs(ctx context.Context, t *table.Table, col int, kind input.Kind,
	flag string) error {
	is := table.IsFinite
	if kind == input.Time {
		is = table.IsTime
	}
	if col < 0 || s.opt.SkipBad > 0 || t.All(col, is) {
		return nil
	}
	column := input.Column{Field: col, Kind: kind, Do: leaveOut(flag)}
	return s.tables.Each(ctx, t, table.Fails, input.Spec{Columns: []input.Column{column}},
		func(*input.Batch) error { return nil })
}

// listColumns adds the columns of a table to the list of what each is taken for.
func (s *parts) listColumns(t *table.Table, roles map[int]string) {
	for c := range t.Width {
		s.info.Columns = append(s.info.Columns,
			TableColumn{File: t.Path, Name: t.Name(c), Role: roles[c]})
	}
}
