package plan

// Partitions describes a training that draws batches from some partitions of the graph, held in
// memory: see package partitioned.
type Partitions struct {
	Bytes    int64  `json:"bytes"` // features and lists
	Order    string `json:"order"`
	Parts    int    `json:"partitions"`
	InMemory int    `json:"partitions_in_memory"`
	Logical  int    `json:"logical_partitions"`
	// Sets is how many sets of partitions an epoch goes through. Read is how many bytes of
	// features an epoch reads, and Lists how many of neighbor lists; each set reads the lists of
	// all its nodes.
	Sets  int   `json:"sets"`
	Read  int64 `json:"read_bytes"`
	Lists int64 `json:"lists_read_bytes"`
	// Lines tell the user why this order and these numbers were chosen.
	Lines []string `json:"why"`
}
