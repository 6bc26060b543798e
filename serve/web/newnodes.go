package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/train"
	"gdb/train/columns"

	"github.com/google/jsonschema-go/jsonschema"
)

// newNode is a node that the store does not have.
type newNode struct {
	Type         string         `json:"type,omitempty" jsonschema:"where nodes have several"`
	Features     []float32      `json:"features,omitempty" jsonschema:"a row, as in the source"`
	Columns      map[string]any `json:"columns,omitempty" jsonschema:"instead: values by column"`
	Neighbors    edgeLists[id]  `json:"neighbors,omitempty" jsonschema:"ids with an edge to it"`
	NewNeighbors edgeLists[int] `json:"new_neighbors,omitempty" jsonschema:"by place in nodes"`
}

// entries counts its neighbors.
func (n *newNode) entries() int { return n.Neighbors.count() + n.NewNeighbors.count() }

// newNodes are new nodes of a request. No more are decoded than one may have: an empty one takes
// many times what its text does.
type newNodes []newNode

// UnmarshalJSON reads a list of new nodes.
func (n *newNodes) UnmarshalJSON(b []byte) error {
	d := newDecoder(b)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return wrong("nodes", "it is no list", "give a list of new nodes")
	}
	for d.More() {
		if len(*n) == unseenMost {
			return wrong("nodes", fmt.Sprintf("more than %d new nodes", unseenMost),
				fmt.Sprintf("ask for %d at a time", unseenMost))
		}
		*n = append(*n, newNode{})
		if err := d.Decode(&(*n)[len(*n)-1]); err != nil {
			return decodeFailure(fmt.Sprintf("nodes[%d]", len(*n)-1), err)
		}
	}
	return nil
}

// edgeLists are what a new node has edges from: lists by relation, or one without a name.
type edgeLists[T any] []edgeList[T]

// edgeList are the ends of edges of a relation; "" where the request names none.
type edgeList[T any] struct {
	relation string
	of       []T
}

func (l edgeLists[T]) count() (n int) {
	for i := range l {
		n += len(l[i].of)
	}
	return n
}

// UnmarshalJSON reads a list, or an object that has one of each relation.
func (l *edgeLists[T]) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		*l = edgeLists[T]{{}}
		return json.Unmarshal(b, &(*l)[0].of)
	}
	var all map[string][]T
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		*l = append(*l, edgeList[T]{name, all[name]})
	}
	return nil
}

// edgeListsSchema describes edgeLists of values.
func edgeListsSchema(of *jsonschema.Schema) *jsonschema.Schema {
	list := &jsonschema.Schema{Type: "array", Items: of}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{list, {Type: "object",
		AdditionalProperties: list}}}
}

// predictNew predicts new nodes, together with those of other requests.
func (r *request) predictNew(ctx context.Context, run *served,
	in *predictIn) ([]train.Prediction, error) {
	all := unseenNodes{request: r, run: run, meta: r.db.Meta(), nodes: in.Nodes}
	if err := all.read(ctx); err != nil {
		return nil, err
	}
	for i := range all.unseen {
		all.unseen[i].Calibrated = in.Calibrated
	}
	return run.batcher.predict(ctx, all.unseen)
}

// unseenNodes reads the new nodes of a request.
type unseenNodes struct {
	*request
	run    *served
	meta   *kv.Meta
	nodes  []newNode
	unseen []train.UnseenNode
}

func (u *unseenNodes) read(ctx context.Context) (err error) {
	u.unseen = make([]train.UnseenNode, len(u.nodes))
	for i := range u.nodes {
		if u.unseen[i].Type, err = u.typeOf(i); err != nil {
			return err
		}
	}
	for i := range u.nodes {
		if u.unseen[i].Features, err = u.row(i); err != nil {
			return err
		}
		if err = u.edges(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// typeOf returns the type of a node.
func (u *unseenNodes) typeOf(i int) (int, error) {
	name, where := u.nodes[i].Type, fmt.Sprintf("nodes[%d].type", i)
	switch {
	case !u.meta.Typed() && name == "", name == "" && len(u.meta.NodeTypes) == 1:
		return 0, nil
	case !u.meta.Typed():
		return 0, wrong(where, "nodes of the store have no types", "leave it out")
	}
	var names []string
	for k := range u.meta.NodeTypes {
		if u.meta.NodeTypes[k].Name == name {
			return k, nil
		}
		names = append(names, u.meta.NodeTypes[k].Name)
	}
	what := fmt.Sprintf("there is no type %q", shortened(name))
	if name == "" {
		what = "nodes of the store have several types"
	}
	return 0, wrong(where, what, "give one of "+strings.Join(names, ", "))
}

// row returns the row of a node.
func (u *unseenNodes) row(i int) ([]float32, error) {
	n, run, typ := &u.nodes[i], u.run, u.unseen[i].Type
	where := fmt.Sprintf("nodes[%d]", i)
	if !run.OfColumns() {
		want := fmt.Sprintf("give %d features", run.Features(typ))
		switch {
		case n.Columns != nil:
			return nil, wrong(where+".columns", "run "+run.Run()+" reads rows of features, and "+
				"no columns", want)
		case len(n.Features) != run.Features(typ):
			return nil, wrong(where+".features", fmt.Sprintf("%d values", len(n.Features)), want)
		}
		return n.Features, nil
	}
	if n.Features != nil {
		return nil, wrong(where+".features", "run "+run.Run()+" reads columns, and no rows of "+
			"features", "give columns")
	}
	row, err := run.Columns(typ)
	if err != nil {
		return nil, wrong(where, "run "+run.Run()+" predicts no new nodes of this type: "+
			err.Error(), "leave it out")
	}
	features, err := row.Encode(n.Columns)
	var cell *columns.CellError
	if errors.As(err, &cell) {
		return nil, wrong(where+".columns."+shortened(cell.Column), cell.What, cell.Do)
	}
	return features, err
}

// edges finds the ends of the edges of a node.
func (u *unseenNodes) edges(ctx context.Context, i int) error {
	n, to := &u.nodes[i], &u.unseen[i]
	for _, list := range n.Neighbors {
		where := fmt.Sprintf("nodes[%d].neighbors", i)
		relation, where, err := u.relation(where, list.relation, to.Type)
		if err != nil {
			return err
		}
		near, err := u.nodesOf(ctx, where, list.of)
		if err != nil {
			return err
		}
		for k, v := range near {
			if u.meta.Typed() {
				err = u.checkSource(fmt.Sprintf("%s[%d]", where, k), relation, u.meta.TypeOf(v))
			}
			if err != nil {
				return err
			}
			to.Relations = append(to.Relations, relation)
		}
		to.Neighbors = append(to.Neighbors, near...)
	}
	for _, list := range n.NewNeighbors {
		where := fmt.Sprintf("nodes[%d].new_neighbors", i)
		relation, where, err := u.relation(where, list.relation, to.Type)
		if err != nil {
			return err
		}
		for at, k := range list.of {
			if k < 0 || k >= len(u.nodes) {
				return wrong(where, fmt.Sprintf("there is no new node %d", k),
					fmt.Sprintf("name 0 to %d", len(u.nodes)-1))
			}
			if u.meta.Typed() {
				err = u.checkSource(fmt.Sprintf("%s[%d]", where, at), relation, u.unseen[k].Type)
			}
			if err != nil {
				return err
			}
			to.Relations = append(to.Relations, relation)
		}
		to.Unseen = append(to.Unseen, list.of...)
	}
	return nil
}

// relation returns the number of a relation that leads to nodes of a type, and where a request has
// its edges. Without a name it is the only one.
func (u *unseenNodes) relation(where, name string, typ int) (uint32, string, error) {
	var names []string
	only := uint32(0)
	for k, of := range u.meta.EdgeTypes {
		if u.meta.Typed() && u.meta.Relations[k].Dst != typ {
			continue
		}
		if of == name {
			return uint32(k), where + "." + name, nil
		}
		only, names = uint32(k), append(names, of)
	}
	of := ""
	if u.meta.Typed() {
		of = " to nodes of type " + u.meta.NodeTypes[typ].Name
	}
	switch {
	case name != "" && len(u.meta.EdgeTypes) == 0:
		return 0, where, wrong(where, "edges of the store have no types", "give a list")
	case name != "":
		return 0, where, wrong(where, fmt.Sprintf("no relation %q leads%s", shortened(name), of),
			"name one of "+strings.Join(names, ", "))
	case len(names) == 1, !u.meta.Typed() && !u.run.ReadsRelations():
		return only, where, nil
	case len(names) == 0:
		return 0, where, wrong(where, "no relation leads"+of, "leave it out")
	}
	return 0, where, wrong(where, "edges have several relations"+of, "give an object with a list "+
		"for each of "+strings.Join(names, ", "))
}

// checkSource returns an error if edges of a relation do not come from a type.
func (u *unseenNodes) checkSource(where string, relation uint32, typ int) error {
	want := u.meta.Relations[relation].Src
	if typ == want {
		return nil
	}
	return wrong(where, "it is of type "+u.meta.NodeTypes[typ].Name, fmt.Sprintf("relation %s "+
		"comes from nodes of type %s", u.meta.EdgeTypes[relation], u.meta.NodeTypes[want].Name))
}
