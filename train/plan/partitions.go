package plan

// Partitions is what a training has in memory that draws batches from some partitions of the graph:
// see package partitioned.
type Partitions struct {
	Bytes    int64  `json:"bytes"` // features and lists
	Order    string `json:"order"`
	Parts    int    `json:"partitions"`
	InMemory int    `json:"partitions_in_memory"`
	Logical  int    `json:"logical_partitions"`
	// Sets are those of an epoch. Read is what an epoch reads of features, and Lists of neighbor
	// lists, of which each set reads those of all its nodes.
	Sets  int   `json:"sets"`
	Read  int64 `json:"read_bytes"`
	Lists int64 `json:"lists_read_bytes"`
	// Lines are the reasons.
	Lines []string `json:"why"`
}
