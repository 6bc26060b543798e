// Package lang is the language of statements. It holds the grammar, as a list of statements and
// their clauses that help and completion read too, and the parser, whose errors point at the place
// of a mistake.
package lang

import "slices"

// Arg says what may follow a keyword.
type Arg uint8

const (
	ArgNone Arg = iota
	ArgInt
	ArgFanout // 10,5 or all
	ArgName
	ArgFile  // a file of the store: topology/in.csc
	ArgNodes // 42 | 42,'x',#17 | RANDOM 64 | SPLIT train
	ArgRange // 0:16
	ArgMatch // everything after MATCH
	ArgPath  // a file to write: 'rows.csv'
	ArgNode  // one node: 42 | 'x' | #17
	ArgWords // some of the choices: lru,clock
	ArgSizes // 64MiB,10%
	ArgRun   // the name of a run
	ArgEdge  // head, relation, tail, one of which may be ?; without types head, tail
)

// Clause is a keyword with its argument. The clauses of a statement may come in any order.
type Clause struct {
	Word     string
	Arg      Arg
	Choices  []string // the words that an ArgName may be; nil allows any
	least    int64    // the least value of an ArgInt
	most     int64    // the largest value of an ArgInt; 0 allows any
	Required bool
}

// Statement is one statement of the language.
type Statement struct {
	Head    string // "NEIGHBORS" or "STATS CACHE"
	Operand Arg
	Clauses []Clause
	exclude [][]string // groups of clauses of which only one may be said
	Help    string
	Example string
}

// Closenesses lists the ways in which NEAREST compares vectors, and Policies the caches that
// SIMULATE knows. The packages that implement them have the same lists, so that the grammar links
// neither; a test of shell compares the lists.
var (
	Closenesses = []string{"cosine", "dot", "euclid"}
	Policies    = []string{"none", "static", "static-sampled", "lru", "clock", "s3fifo", "sieve",
		"belady"}
)

// Directions lists the three clauses that choose directions of lists.
var Directions = []Clause{{Word: "IN"}, {Word: "OUT"}, {Word: "BOTH"}}

func with(base []Clause, more ...Clause) []Clause {
	return append(append([]Clause(nil), base...), more...)
}

// Statements is the only list of statements: the parser, help and "did you mean" read it.
var Statements []Statement

func init() { Statements = slices.Concat(graphStatements(), storeStatements()) }

// graphStatements returns the statements that ask for nodes, edges and what belongs to them.
func graphStatements() []Statement {
	return []Statement{
		{Head: "NEIGHBORS", Operand: ArgNodes,
			Clauses: with(Directions, Clause{Word: "HOPS", Arg: ArgInt, least: 1, most: hopsMost},
				Clause{Word: "VIA", Arg: ArgName}, Clause{Word: "COUNT"},
				Clause{Word: "LIMIT", Arg: ArgInt}),
			Help:    "neighbors of nodes, or all within some hops; OUT if kept",
			Example: "NEIGHBORS 42 IN HOPS 2 COUNT;"},
		{Head: "DEGREES",
			Clauses: with(Directions, Clause{Word: "VIA", Arg: ArgName},
				Clause{Word: "OF", Arg: ArgNodes},
				Clause{Word: "TOP", Arg: ArgInt, least: 1, most: degreesMost},
				Clause{Word: "LOG"}, Clause{Word: "BINS", Arg: ArgInt, least: 1, most: binsMost}),
			exclude: [][]string{{"OF", "TOP", "LOG", "BINS"}, {"TOP", "BOTH"}},
			Help:    "degrees of nodes, the highest ones, or their distribution",
			Example: "DEGREES IN TOP 10;"},
		{Head: "PATH", Operand: ArgNode,
			Clauses: with(Directions, Clause{Word: "TO", Arg: ArgNode, Required: true},
				Clause{Word: "VIA", Arg: ArgName},
				Clause{Word: "MAX", Arg: ArgInt, least: 1, most: PathMost}),
			Help:    "a shortest path between two nodes; no rows if there is none",
			Example: "PATH 42 TO 7 MAX 10;"},
		{Head: "MATCH", Operand: ArgMatch,
			Help:    "find a pattern that begins or ends at known nodes",
			Example: "MATCH (a {id: 42})-[]-(b)-[]-(c) WHERE c.id <> 42 RETURN c.id, count(*);"},
		{Head: "SAMPLE", Operand: ArgNodes,
			Clauses: with(Directions, Clause{Word: "FANOUT", Arg: ArgFanout, Required: true},
				Clause{Word: "SEED", Arg: ArgInt}, Clause{Word: "EPOCH", Arg: ArgInt, least: 1},
				Clause{Word: "BATCH", Arg: ArgInt, least: 1},
				Clause{Word: "SIZE", Arg: ArgInt, least: 1},
				Clause{Word: "STRATEGY", Arg: ArgName,
					Choices: []string{"uniform", "weighted", "latest", "full"}},
				Clause{Word: "SHOW", Arg: ArgName,
					Choices: []string{"dense", "layers", "edges", "io"}}),
			Help:    "draw one mini-batch exactly as training would, and show it",
			Example: "SAMPLE 42,7 FANOUT 2,2 SEED 7 SHOW dense;"},
		{Head: "FEATURES", Operand: ArgNodes,
			Clauses: []Clause{{Word: "COLUMNS", Arg: ArgRange}, {Word: "STATS"}},
			Help:    "feature rows, or statistics of them",
			Example: "FEATURES 42,43 COLUMNS 0:8;"},
		{Head: "LABELS", Operand: ArgNodes,
			Clauses: []Clause{{Word: "COUNTS"}},
			Help:    "labels of nodes, or how many nodes have each",
			Example: "LABELS SPLIT train COUNTS;"},
		{Head: "NEAREST", Operand: ArgNode,
			Clauses: []Clause{{Word: "TOP", Arg: ArgInt, least: 1, most: nearestMost},
				{Word: "BY", Arg: ArgName, Choices: Closenesses},
				{Word: "RUN", Arg: ArgRun}, {Word: "FEATURES", Arg: ArgName},
				{Word: "TYPE", Arg: ArgName}, {Word: "AMONG", Arg: ArgNodes}, {Word: "EXACT"}},
			exclude: [][]string{{"RUN", "FEATURES"}},
			Help:    "the nodes with the closest learned vectors, or features",
			Example: "NEAREST 42 TOP 10;"},
		{Head: "SCORE", Operand: ArgEdge,
			Clauses: []Clause{{Word: "TOP", Arg: ArgInt, least: 1, most: nearestMost},
				{Word: "NEW"}, {Word: "RUN", Arg: ArgRun}},
			Help:    "what a run makes of an edge, or the best ends for ?",
			Example: "SCORE 42, cites, ? TOP 10;"},
	}
}

// storeStatements returns the statements that ask about the store and the session.
func storeStatements() []Statement {
	return []Statement{
		{Head: "STATS GRAPH",
			Help: "node, edge, feature and file totals", Example: "STATS GRAPH;"},
		{Head: "STATS CACHE",
			Clauses: []Clause{{Word: "BY", Arg: ArgName,
				Choices: []string{"policy", "file", "partition", "epoch"}},
				{Word: "RUN", Arg: ArgRun}},
			Help:    "caches of this session and of the newest run",
			Example: "STATS CACHE BY file;"},
		{Head: "STATS IO",
			Clauses: []Clause{{Word: "BY", Arg: ArgName,
				Choices: []string{"file", "phase", "op"}}},
			Help: "reads of this session", Example: "STATS IO BY op;"},
		{Head: "STATS PARTITIONS",
			Clauses: []Clause{{Word: "TOP", Arg: ArgInt, least: 1}},
			Help:    "nodes and edges of each partition", Example: "STATS PARTITIONS TOP 5;"},
		{Head: "STATS BUCKETS",
			Clauses: []Clause{{Word: "TOP", Arg: ArgInt, least: 1}},
			Help:    "edges between each two partitions, counted in one scan",
			Example: "STATS BUCKETS TOP 5;"},
		{Head: "SIMULATE CACHE",
			Clauses: []Clause{{Word: "POLICIES", Arg: ArgWords, Choices: Policies},
				{Word: "SIZES", Arg: ArgSizes}, {Word: "RUN", Arg: ArgRun},
				{Word: "SPLIT", Arg: ArgName}, {Word: "FANOUT", Arg: ArgFanout},
				{Word: "BATCH", Arg: ArgInt, least: 1}, {Word: "SEED", Arg: ArgInt},
				{Word: "EPOCHS", Arg: ArgInt, least: 1}, {Word: "BATCHES", Arg: ArgInt, least: 1}},
			Help:    "hits of caches of any policy and size in a training",
			Example: "SIMULATE CACHE POLICIES lru,s3fifo,belady SIZES 10%,64MiB FANOUT 5,5;"},
		{Head: "TRACE IO",
			Clauses: []Clause{{Word: "ON"}, {Word: "OFF"}, {Word: "LAST", Arg: ArgInt, least: 1}},
			exclude: [][]string{{"ON", "OFF", "LAST"}},
			Help:    "record the reads of this session, and show the last ones",
			Example: "TRACE IO ON;"},
		{Head: "RESET STATS",
			Help: "make the counters of this session begin anew", Example: "RESET STATS;"},
		{Head: "SET", Operand: ArgName,
			Clauses: []Clause{{Word: "TO", Arg: ArgName, Required: true}},
			Help:    "change a setting of this session: seed", Example: "SET seed TO 7;"},
		{Head: "RUNS",
			Clauses: []Clause{{Word: "PLOT", Arg: ArgRun}, {Word: "METRIC", Arg: ArgName}},
			Help:    "the trainings on this store, or a curve of one",
			Example: "RUNS;"},
		{Head: "BLOCK", Operand: ArgFile,
			Clauses: []Clause{{Word: "AT", Arg: ArgInt, Required: true}, {Word: "HEX"},
				{Word: "DECODE"}},
			exclude: [][]string{{"HEX", "DECODE"}},
			Help:    "one block of a file of the store, raw or field by field",
			Example: "BLOCK topology/in.csc AT 1 DECODE;"},
		{Head: "CHECK",
			Clauses: []Clause{{Word: "FULL"}, {Word: "OF", Arg: ArgFile}},
			Help:    "verify checksums, and with FULL what the bytes mean",
			Example: "CHECK FULL;"},
		{Head: "DESCRIBE",
			Clauses: []Clause{{Word: "FILES"}, {Word: "TYPES"}},
			exclude: [][]string{{"FILES", "TYPES"}},
			Help:    "features, labels and splits; files; types of edges",
			Example: "DESCRIBE FILES;"},
		{Head: "HELP",
			Help: "the statements, with an example each", Example: "HELP;"},
	}
}

// hopsMost is the largest number that HOPS takes.
const hopsMost = 64

// nearestMost is the largest TOP of NEAREST and SCORE.
const nearestMost = 1 << 16

// degreesMost is the largest TOP of DEGREES, and binsMost the largest BINS.
const (
	degreesMost = 1 << 20
	binsMost    = 1 << 16
)

// PathMost bounds the length of a path that PATH looks for.
const PathMost = 1 << 16
