// Package protocol is what gdb and a client say to each other over a Unix socket. Each side sends
// frames: a header, a JSON body, bytes, and descriptors of shared memory beside the header.
//
//	0        4        8      10      12
//	+--------+--------+------+-------+------+------+
//	| body   | data   | kind | files | body | data |   lengths in bytes, little-endian
//	+--------+--------+------+-------+------+------+
//
// The server begins with Welcome, and the client with Hello; both name the version of the protocol.
// Then the client sends requests, and the server answers each with one frame before it reads the
// next: what the request asks for, or Failed. Return alone has no answer.
package protocol

// Version is that of the protocol. A client of another one is refused. A field that a client may do
// without is added without a new version: clients pass over fields that they do not know, and take
// one that is not there for empty.
const Version = 4

// Kind says what the body of a frame is.
type Kind uint16

// The kinds of frames, by who sends them.
const (
	KindWelcome Kind = iota + 1 // the server, Welcome
	KindHello                   // the client, Hello: answered by Done
	KindFailed                  // the server, Failed
	KindDone                    // the server, no body

	KindOpen   // the client, Open, with seeds as data: answered by Opened
	KindOpened // the server, Opened
	KindStart  // the client, Start: answered by Done
	KindNext   // the client, Next: answered by Batch or End
	KindBatch  // the server, Batch
	KindEnd    // the server, no body
	KindLeave  // the client, Next: it wants no more of the epoch; answered by Done

	KindRows      // the client, node ids as data: answered by Arrays
	KindNeighbors // the client, Neighbors, with node ids as data: answered by Arrays
	KindArrays    // the server, Arrays, with their bytes as data
	KindQuery     // the client, Query: answered by Table
	KindTable     // the server, Table
	KindNames     // the client, node ids as data: answered by Names
	KindNodes     // the client, Names: answered by Arrays
	KindStats     // the client, no body: answered by Stats
	KindStatsNow  // the server, Stats
	KindNamed     // the server, Names
	KindLabels    // the client, node ids as data: answered by Arrays

	KindSample    // the client, Sample, with seeds as data: answered by Batch
	KindEdges     // the client, Edges: answered by Arrays
	KindNodeTypes // the client, node ids as data: answered by Arrays
	KindReturn    // the client, Next: arenas come back between two requests; without an answer
	KindBye       // the client, no body: it closes its loader; without an answer
)

// Hello is what a client says first.
type Hello struct {
	Protocol int `json:"protocol"`
}

// Welcome is what a server says first.
type Welcome struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of gdb
	Store    Store  `json:"store"`
}

// Store is what a client hears of the store.
type Store struct {
	Path     string            `json:"path"`
	UUID     string            `json:"uuid"`
	Nodes    uint64            `json:"nodes"`
	Edges    uint64            `json:"edges"`
	Dim      int               `json:"dim"`      // of features; 0 for none
	Labels   string            `json:"labels"`   // class, multi, target, or empty
	Classes  []string          `json:"classes"`  // as ingested
	Types    []string          `json:"types"`    // of edges, by number
	Splits   map[string]uint64 `json:"splits"`   // nodes of each
	External bool              `json:"external"` // nodes have ids of the user's, not 0 … nodes-1
	// NodeTypes are the names of the types of nodes, by number; EdgeSplits has the edges of each.
	NodeTypes  []string          `json:"node_types"`
	EdgeSplits map[string]uint64 `json:"edge_splits"`
	// FeatureNames are the source's names of the columns of features; null where it had none.
	FeatureNames []string `json:"feature_names"`
}

// Failed is why a request failed.
type Failed struct {
	Message string `json:"message"`
	// What is held, usage, damaged or failed.
	What string `json:"what"`
}

// Open asks for a loader. Data are its seeds as uint32, or nothing: those of Split.
type Open struct {
	Split  string `json:"split"` // train, val, test, or train@K and the like
	Fanout []int  `json:"fanout"`
	Batch  int    `json:"batch"`
	Seed   uint64 `json:"seed"`
	// Memory bounds the server's process, in bytes. The first loader sets it; 0 is the default, or
	// what was set.
	Memory int64 `json:"memory"`
	// Cache is a policy, or auto.
	Cache string `json:"cache"`
	// Normalize is how features are scaled: none (or empty), row, zscore, or auto as gdb train has
	// it. The first loader sets it; auto of another is what was set.
	Normalize string `json:"normalize"`
	// Of World clients with the same settings, each of another Rank gets every World-th batch.
	Rank  int `json:"rank"`
	World int `json:"world"`
	// Own parts these clients from others with the same settings: processes that were forked, say.
	// They get all batches of an epoch, though the last ones are not enough for all of them.
	Own string `json:"own"`
}

// Opened is what a loader is like.
type Opened struct {
	Seeds   uint64 `json:"seeds"`
	Batches uint64 `json:"batches"` // of an epoch, for each client
	Plan    string `json:"plan"`    // of the memory, for people
	// Normalize is how features are scaled: none, row or zscore.
	Normalize string `json:"normalize"`
}

// Start asks for the batches of an epoch, from one on, counted in those of the client.
type Start struct {
	Epoch uint64   `json:"epoch"`
	First uint64   `json:"first"`
	Done  []uint32 `json:"done"` // arenas that come back
}

// Next asks for a batch.
type Next struct {
	Done []uint32 `json:"done"` // arenas that come back
}

// Batch is a batch in an arena, which the client has until it gives it back. If the arena is new
// its descriptor comes with the frame.
type Batch struct {
	Arena uint32   `json:"arena"`
	Bytes int      `json:"bytes"` // of the arena, whole pages
	New   bool     `json:"new"`
	Gone  []uint32 `json:"gone"` // arenas that are never used again

	Epoch uint64 `json:"epoch"`
	Index uint64 `json:"index"` // in the epoch, over all clients
	// Seeds is how many there are: the first nodes.
	Seeds int `json:"seeds"`
	// HopNodes are the seeds and then those that each hop adds; HopEdges the edges of each hop.
	HopNodes []int   `json:"hop_nodes"`
	HopEdges []int   `json:"hop_edges"`
	Arrays   []Array `json:"arrays"`
}

// Array is an array at an offset of an arena, or of a frame's data. Type is f4, i8 or u4.
type Array struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Shape  []int  `json:"shape"`
	Offset int    `json:"offset"`
}

// Arrays are the arrays in the data of a frame.
type Arrays struct {
	Arrays []Array `json:"arrays"`
}

// Sample asks for the batch around seeds, each a node of its own, of the loader that was opened:
// its draws are those of its seed, an epoch and a number of a batch. An epoch under way is left.
type Sample struct {
	Epoch uint64   `json:"epoch"`
	Index uint64   `json:"index"`
	Done  []uint32 `json:"done"` // arenas that come back
}

// Edges asks for edges of a split of the edges, as they stand in its file: edge_index (2, Count) u4
// and, where edges have types, edge_type (Count) i8.
type Edges struct {
	Split string `json:"split"`
	First uint64 `json:"first"`
	Count uint64 `json:"count"` // EdgesMost at most
}

// EdgesMost are the edges that are asked for at a time.
const EdgesMost = 1 << 20

// Neighbors asks for the in-neighbors of nodes: all, or Fanout at most of each, drawn by Seed.
type Neighbors struct {
	Fanout int    `json:"fanout"` // -1 for all
	Seed   uint64 `json:"seed"`
}

// Query is a statement of the shell.
type Query struct {
	Statement string `json:"statement"`
}

// Names are ids of the user's.
type Names struct {
	Names []string `json:"names"`
}

// Table is the result of a statement. Kinds are int64, float64 and string, one for each
// column; a cell of any may be null. Notes are what the rows do not show and the user must know.
type Table struct {
	Columns []string `json:"columns"`
	Kinds   []string `json:"kinds"`
	Notes   []string `json:"notes"`
	Rows    [][]any  `json:"rows"`
}

// Stats are counters of the server since it began.
type Stats struct {
	BytesRead uint64 `json:"bytes_read"` // by the device
	Requests  uint64 `json:"requests"`   // rows asked of the cache
	Hits      uint64 `json:"hits"`
	Policy    string `json:"policy"`
	RSS       int64  `json:"rss_bytes"`
	RSSPeak   int64  `json:"rss_peak_bytes"`
	Batches   uint64 `json:"batches"`
	// Sample, Gather and Pack are seconds of making them.
	Sample float64 `json:"sample_s"`
	Gather float64 `json:"gather_s"`
	Pack   float64 `json:"pack_s"` // lists as clients read them, and descriptors
}
