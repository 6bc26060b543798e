package program

// Value names a matrix of a program. The zero Value is none.
type Value int32

// role is where the memory of a value is.
type role uint8

const (
	roleStep     role = iota // of a step, by liveness
	roleFeatures             // features of the batch, which a step may overwrite
	roleParam                // a parameter
	roleGrad                 // the gradient of a parameter
	roleHost                 // values of the host that are only read: properties
	roleTable                // rows of the owner of a feature cache, by their numbers
	roleState                // states of nodes outside memory, by layer
)

// value is what a program knows of a Value.
type value struct {
	rows Rows
	cols int
	role role
	// index is the number of a parameter or of its gradient, of a property, or of a layer.
	index int
	// first is the first row of a parameter that is the matrix of a type.
	first int
	// base is the value of which this is the last rows; 0 for none.
	base Value
	// name is shown, of parameters.
	name string
	// grad says that a gradient reaches it: it depends on parameters.
	grad bool
	// half says that it is of bfloat16.
	half bool
}

// Property is data of a batch that an operation reads.
type Property uint8

// The properties.
const (
	// InvSqrtDegree has for each node 1/sqrt(1+d), d being its in-degree in the whole graph.
	InvSqrtDegree Property = iota
	// ListScale has for each node with a list how many neighbors it has in the whole graph for each
	// that was drawn.
	ListScale
	// EdgeWeight has the weight of each entry, over its probability where layers were drawn:
	// sample.Dense.Weights. EdgeType has the bits of the number of its type.
	EdgeWeight
	EdgeType
	// TypeShare has for each entry 1/n, n being the entries of its type in its list.
	TypeShare
	// InvListWeight has for each node with a list 1/s, s being the sum of the weights in the list;
	// 0 where that is not positive.
	InvListWeight
	// InvSqrtWeight has for each node 1/sqrt(1+s), s being the sum of the weights of its list in
	// the whole graph; 0 where that is no number.
	InvSqrtWeight
	// InvDegree has for each node with a list 1/d, d being its in-degree in the whole graph, and
	// InvWeightSum 1/s, s being the sum of the weights of its list there; 0 where these are not
	// positive.
	InvDegree
	InvWeightSum
	// NodeType has the bits of the number of each node's type, and SegmentType those of the number
	// of the type of each segment's entries.
	NodeType
	SegmentType
	// SourceRelation has the bits of the number of a relation that each node is a source of, in
	// layers over whole lists: see ExactLayer.ByRelation.
	SourceRelation
	// Inside is Halo.Inside.
	Inside
	// EdgeColumn has the columns of each entry: dense.Lists.Columns.
	EdgeColumn
	// EdgeMask is Input.Mask.
	EdgeMask

	properties = iota
)

// propertyKinds holds what is known of each property.
var propertyKinds = [properties]struct {
	name string
	rows Rows // that have it
	held bool // whether a machine computes it, in memory of its own
}{
	InvSqrtDegree: {"1/sqrt(1+degree)", Nodes(0), true},
	ListScale:     {"neighbors/drawn", Nodes(1), true},
	EdgeWeight:    {"weight", Entries(List{}), false},
	EdgeType:      {"type", Entries(List{}), false},
	TypeShare:     {"1/entries of the type", Entries(List{}), true},
	InvListWeight: {"1/weights", Nodes(1), true},
	InvSqrtWeight: {"1/sqrt(1+weights)", Nodes(0), true},
	InvDegree:     {"1/degree", Nodes(1), true},
	InvWeightSum:  {"1/all weights", Nodes(1), true},
	NodeType:      {"type of node", Nodes(0), true},
	SegmentType:   {"type of segment", Segments(0), false},

	SourceRelation: {"relation of source", Nodes(0), false},

	Inside:     {"inside", Nodes(0), false},
	EdgeColumn: {"columns", Entries(List{}), false},
	EdgeMask:   {"mask", Entries(List{}), false},
}

// width returns how many columns a property has.
func (p *Program) width(k Property) int {
	if k == EdgeColumn {
		return max(1, p.columns)
	}
	return 1
}

// perEntry reports whether a property belongs to entries, and not to nodes.
func (k Property) perEntry() bool { return propertyKinds[k].rows.kind == entryRows }
