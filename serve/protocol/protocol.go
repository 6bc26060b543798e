// Package protocol defines what gdb and a client say to each other over a Unix socket. Each side
// sends frames: a header, a JSON body, bytes, and descriptors of shared memory beside the header.
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

import "encoding/json"

// Version is the version of the protocol. The server refuses a client of another version. A field
// that clients can do without is added without a new version: clients ignore fields that they do
// not know, and take a missing field as empty.
const Version = 6

// Kind says which message a frame is, and so what its body holds.
type Kind uint16

// The kinds of frames. The comments say who sends a frame and which type its body has.
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
	KindTable     // the server, Table, with the buffers of its columns as data
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
	KindDeleted   // the client, Deleted: answered by Arrays
)

// Hello is the first message of a client.
type Hello struct {
	Protocol int `json:"protocol"`
}

// Welcome is the first message of the server.
type Welcome struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of gdb
	Store    Store  `json:"store"`
}

// Store describes the store to a client.
type Store struct {
	Path     string            `json:"path"`
	UUID     string            `json:"uuid"`
	Nodes    uint64            `json:"nodes"`
	Deleted  uint64            `json:"deleted"` // nodes that keep their numbers, which no batch has
	Edges    uint64            `json:"edges"`
	Dim      int               `json:"dim"`      // of features; 0 for none
	Labels   string            `json:"labels"`   // class, multi, target, or empty
	Classes  []string          `json:"classes"`  // as ingested
	Types    []string          `json:"types"`    // of edges, by number
	Splits   map[string]uint64 `json:"splits"`   // the number of nodes of each split
	External bool              `json:"external"` // whether nodes have ids of the user
	// NodeTypes holds the names of the types of nodes, by number; EdgeSplits the number of edges of
	// each edge split.
	NodeTypes []string `json:"node_types"`
	// NodeFirsts holds the first node of each type, and Relations the numbers of the types of the
	// source and the target of each of Types; null where types are not ranges of nodes.
	NodeFirsts []uint64 `json:"node_firsts"`
	Relations  [][2]int `json:"relations"`
	// NodeDims holds the widths of the features of each type; null where all nodes have the same.
	NodeDims   []int             `json:"node_dims"`
	EdgeSplits map[string]uint64 `json:"edge_splits"`
	// FeatureNames holds the source's names of the columns of features; null where it had none.
	FeatureNames []string `json:"feature_names"`
}

// Failed says why a request failed.
type Failed struct {
	Message string `json:"message"`
	// What is the kind of the error: held, usage, damaged or failed.
	What string `json:"what"`
}

// Open asks for a loader. The frame's data holds its seeds as uint32; if empty, the seeds are the
// nodes of Split.
type Open struct {
	Split  string `json:"split"` // train, val, test, or train@K and the like
	Fanout []int  `json:"fanout"`
	// FanoutBy holds, of each hop, how many neighbors are drawn of each relation of a typed store,
	// by name; "" is for those that are not named, 0 draws none. Fanout has the largest of each
	// hop.
	FanoutBy []map[string]int `json:"fanout_by,omitempty"`
	Batch    int              `json:"batch"`
	Seed     uint64           `json:"seed"`
	// Memory bounds the memory of the server's process, in bytes. The first loader sets it; 0 takes
	// the default, or what the first loader has set.
	Memory int64 `json:"memory"`
	// Cache is the name of a cache policy, or auto. With belady all batches of an epoch are drawn
	// before the first one comes, and the loader is the only one of its server.
	Cache string `json:"cache"`
	// Normalize says how features are scaled: none (or empty), row, zscore, or auto, which decides
	// as gdb train does. The first loader sets it; in a later one, auto takes what was set.
	Normalize string `json:"normalize"`
	// World is the number of clients that share the loader. The client of each Rank gets every
	// World-th batch.
	Rank  int `json:"rank"`
	World int `json:"world"`
	// Own keeps these clients apart from others with the same settings, for example from those of
	// other processes that were forked. With Own, the clients get all batches of an epoch, even if
	// the last round has too few for all clients.
	Own string `json:"own"`
	// Places asks for where edges stand in the lists of their nodes, in batches around seeds.
	Places bool `json:"places"`
}

// Opened describes the loader that was opened.
type Opened struct {
	Seeds   uint64 `json:"seeds"`
	Batches uint64 `json:"batches"` // of an epoch, for each client
	Plan    string `json:"plan"`    // the plan of the memory, as text for people
	// Normalize says how features are scaled: none, row or zscore.
	Normalize string `json:"normalize"`
}

// Start asks for the batches of an epoch, beginning with batch First of those that the client gets.
// With nodes in the data of the frame, u4, these are the seeds of the epoch in their order, of
// which each batch has as many as the loader says. They are for loaders of one client.
type Start struct {
	Epoch uint64   `json:"epoch"`
	First uint64   `json:"first"`
	Done  []uint32 `json:"done"` // arenas that the client gives back
	// Sizes holds the number of seeds of each batch, at most Open.Batch, where these are given and
	// differ; else all but the last have Open.Batch.
	Sizes []uint32 `json:"sizes,omitempty"`
}

// Next asks for the next batch.
type Next struct {
	Done []uint32 `json:"done"` // arenas that the client gives back
}

// Batch is a batch in an arena, which the client has until it gives the arena back. If the arena is
// new to the client, its descriptor comes with the frame.
type Batch struct {
	Arena uint32   `json:"arena"`
	Bytes int      `json:"bytes"` // the size of the arena: whole pages
	New   bool     `json:"new"`
	Gone  []uint32 `json:"gone"` // arenas that the client may forget: they are never used again

	Epoch uint64 `json:"epoch"`
	Index uint64 `json:"index"` // the number in the epoch, counted over all clients
	// Seeds is the number of seeds, which are the first nodes.
	Seeds int `json:"seeds"`
	// HopNodes counts the seeds, and then the nodes that each hop adds; HopEdges counts the edges
	// of each hop.
	HopNodes []int   `json:"hop_nodes"`
	HopEdges []int   `json:"hop_edges"`
	Arrays   []Array `json:"arrays"`
}

// Array describes an array at an offset of an arena or of a frame's data. Type is f4, i8 or u4.
type Array struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Shape  []int  `json:"shape"`
	Offset int    `json:"offset"`
}

// Arrays describes the arrays in the data of a frame.
type Arrays struct {
	Arrays []Array `json:"arrays"`
}

// Sample asks for a batch around seeds, which must be distinct nodes, with the fanout of the loader
// that was opened. The loader's seed, Epoch and Index decide the random draws. The client leaves an
// epoch that is under way.
type Sample struct {
	Epoch uint64   `json:"epoch"`
	Index uint64   `json:"index"`
	Done  []uint32 `json:"done"` // arenas that the client gives back
}

// Edges asks for edges of an edge split in the order of its file. The answer has edge_index (2,
// Count) u4 and, where edges have types, edge_type (Count) i8.
type Edges struct {
	Split string `json:"split"`
	First uint64 `json:"first"`
	Count uint64 `json:"count"` // at most EdgesMost
}

// EdgesMost is the largest number of edges that one request may ask for.
const EdgesMost = 1 << 20

// Deleted asks for deleted nodes in the order of their numbers. The answer has n_id (Count) i8.
type Deleted struct {
	First uint64 `json:"first"` // counted among them
	Count uint64 `json:"count"` // at most DeletedMost
}

// DeletedMost is the largest number of deleted nodes that one request may ask for.
const DeletedMost = 1 << 20

// Neighbors asks for the in-neighbors of nodes: all of them, or at most Fanout for each node, drawn
// by Seed.
type Neighbors struct {
	Fanout int    `json:"fanout"` // -1 for all
	Seed   uint64 `json:"seed"`
}

// Query asks for the result of a statement of the shell.
type Query struct {
	Statement string          `json:"statement"`
	Params    json.RawMessage `json:"params,omitempty"` // an object: values of $NAME
}

// Names holds external ids of nodes.
type Names struct {
	Names []string `json:"names"`
}

// Table is the result of a statement. Columns is a list of columns.Layout, of package
// shell/columns; the buffers of columns are the data of the frame. Notes say what the rows do not
// show and the user must know.
type Table struct {
	Columns json.RawMessage `json:"columns"`
	Rows    int             `json:"rows"`
	Notes   []string        `json:"notes"`
}

// Stats counts what the server has done since it began.
type Stats struct {
	BytesRead uint64 `json:"bytes_read"` // by the device
	Requests  uint64 `json:"requests"`   // rows asked of the cache
	Hits      uint64 `json:"hits"`
	Policy    string `json:"policy"`
	RSS       int64  `json:"rss_bytes"`
	RSSPeak   int64  `json:"rss_peak_bytes"`
	Batches   uint64 `json:"batches"`
	// Sample, Gather and Pack are the seconds that these steps of making batches have taken.
	Sample float64 `json:"sample_s"`
	Gather float64 `json:"gather_s"`
	Pack   float64 `json:"pack_s"` // lists as clients read them, and descriptions of batches
}
