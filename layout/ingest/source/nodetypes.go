package source

import (
	"regexp"
	"slices"
	"strings"

	"gdb/layout/ingest/input"
)

// TypeSep stands between the type of a node and its id: user 17 is the node "user:17".
const TypeSep = ":"

// Relation is a file of edges of one type, between nodes of a type each, or of any if these are "".
type Relation struct {
	Src, Name, Dst string
	File           string
}

var relationName = regexp.MustCompile(`^(?:([\w.-]+):)?([\w.-]+)(?::([\w.-]+))?=(.+)$`)

// ParseRelation reads NAME=FILE or SRC:NAME:DST=FILE; ok is false where there is no name.
func ParseRelation(s string) (r Relation, ok bool) {
	m := relationName.FindStringSubmatch(s)
	if m == nil || (m[1] == "") != (m[3] == "") {
		return Relation{File: s}, false
	}
	return Relation{m[1], m[2], m[3], m[4]}, true
}

// String is what ParseRelation reads.
func (r Relation) String() string {
	if r.Src == "" {
		return r.Name + "=" + r.File
	}
	return r.Src + ":" + r.Name + ":" + r.Dst + "=" + r.File
}

// nodeTypes finds the types of nodes, and whether they are said of all or of none.
func (s *textGraph) nodeTypes() error {
	o := s.opt
	if (o.SrcType == "") != (o.DstType == "") {
		return input.Usage("--src-type and --dst-type go together: both ends of an edge " +
			"have a type")
	}
	types := []string{o.SrcType, o.DstType}
	for _, t := range s.edges {
		types = append(types, t.srcType, t.dstType)
	}
	if slices.Contains(types, "") && strings.Join(types, "") != "" {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "" })
		if o.SrcType != "" || slices.ContainsFunc(s.edges, func(t *edgeTable) bool {
			return t.srcType == ""
		}) {
			return input.Usage("some edges have types of nodes and others have none: write " +
				"--edges SRC:REL:DST=FILE of all, or give --src-type and --dst-type")
		}
	}
	for _, t := range types {
		if t != "" && !slices.Contains(s.info.NodeTypes, t) {
			s.info.NodeTypes = append(s.info.NodeTypes, t)
		}
	}
	if len(s.info.NodeTypes) > 0 {
		s.info.TextIDs = true
	}
	slices.Sort(s.info.NodeTypes)
	return s.typeOfNodes()
}

// typeOfNodes checks the type of the ids in tables of nodes.
func (s *textGraph) typeOfNodes() error {
	o := s.opt
	tables := o.Nodes != "" || o.Labels != "" || o.Features != "" || len(o.Splits) > 0
	switch known := s.info.NodeTypes; {
	case o.NodesType != "" && !slices.Contains(known, o.NodesType):
		return input.Usage("--nodes %s=…: there are no nodes of that type; there are %s",
			o.NodesType, strings.Join(known, ", "))
	case o.NodesType == "" && len(known) > 1 && o.Nodes != "":
		return input.Usage("which type are the ids of --nodes? Write --nodes TYPE=%s, where "+
			"TYPE is %s", o.Nodes, strings.Join(known, " or "))
	case o.NodesType == "" && len(known) > 1 && tables:
		s.note("ids in files of labels, features and splits have their type before them, as in "+
			"%s%s17", known[0], TypeSep)
	case len(known) == 1:
		s.nodesType = known[0]
		return nil
	}
	s.nodesType = o.NodesType
	return nil
}

// prefixer writes a type before ids.
type prefixer struct {
	prefix string
	arena  []byte
}

func newPrefixer(typ string) prefixer {
	if typ == "" {
		return prefixer{}
	}
	return prefixer{prefix: typ + TypeSep}
}

// apply replaces ids by those with the type before them, valid until the next call.
func (p *prefixer) apply(ids [][]byte) {
	if p.prefix == "" {
		return
	}
	size := 0
	for _, id := range ids {
		size += len(p.prefix) + len(id)
	}
	p.arena = slices.Grow(p.arena[:0], size)
	for i, id := range ids {
		at := len(p.arena)
		p.arena = append(append(p.arena, p.prefix...), id...)
		ids[i] = p.arena[at:len(p.arena):len(p.arena)]
	}
}
