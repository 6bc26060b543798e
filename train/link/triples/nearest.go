package triples

import "errors"

// VectorsOf names vectors of nodes: those that a run has learned, or a file of features. The other
// is "".
type VectorsOf struct{ Run, Features string }

// Check returns an error unless one of both is named, in the words of the flags that name them.
func (o VectorsOf) Check() error {
	if (o.Run == "") == (o.Features == "") {
		return errors.New("give --run NAME or --features NAME, to say which vectors")
	}
	return nil
}

// runPrefix begins the name of vectors of a run.
const runPrefix = "run "

// String returns the name of the index of these vectors. The names of other indexes have a point
// behind the type of nodes.
func (o VectorsOf) String() string {
	if o.Run != "" {
		return runPrefix + o.Run
	}
	return "features " + o.Features
}

// ErrPartitioned says that the vectors of a run are on disk by partition, where single ones are not
// read.
var ErrPartitioned = errors.New("its vectors are on disk by partition, and have no index")

// Nearest asks for the nodes whose vectors are closest to that of a node.
type Nearest struct {
	Node uint32
	// By is the way to compare, and Top the number of answers.
	By  string
	Top int
	// Among reports whether a node may be an answer; nil allows all. Allowed is about how many it
	// allows.
	Among   func(node uint32) bool
	Allowed uint64
	// Probes is how many lists of an index are looked at, and Rerank how many candidates are
	// compared exactly for ten answers; 0 for what the index was measured to need.
	Probes, Rerank int
}
