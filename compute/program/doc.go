// Package program describes a training step as a dataflow graph of operations, derives its backward
// pass, improves it, and runs it on a backend.
//
// A model is a function that calls a Builder. What the calls append is a list of operations over
// values. A value is a matrix whose rows are the nodes that a hop reads, the entries of a hop's
// neighbor lists, or neither (a parameter). Numbers of rows stay symbols until a mini-batch is
// there, so a program is made once and its memory is laid out for each batch.
//
// The groups of operations follow Joestar (003, Table 5.2), lowered to operations over
// matrices and lists as its Table 5.3 says: property queries (degrees, weights of entries),
// structural transformations (lists of a hop, with self loops, transposed for the backward pass),
// and computation (sums over lists, scores of entries, products, element-wise functions).
//
// The stages of a program: Build appends operations; the passes rewrite them (order of aggregation
// and product, fusion, rows read in place); the gradient of each operation is appended by its rule;
// operations whose results nothing reads are dropped; values are given memory by their liveness.
//
// An operation is one value, a Kind, in the file of its family: elements.go, products.go,
// columns.go, norms.go, pulls.go and attention.go. Passes ask its fields and stand above these
// files: order.go, fuse.go, grad.go, half.go and liveness.go; Machine and ExactLayer, above all,
// run programs.
package program
