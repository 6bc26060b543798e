package shell

import (
	"context"
	"slices"

	"gdb/sample/cachesim"
)

// argKind says what may follow a keyword.
type argKind uint8

const (
	argNone argKind = iota
	argInt
	argFanout // 10,5 or all
	argName
	argFile  // a file of the store: topology/in.csc
	argNodes // 42 | 42,'x',#17 | RANDOM 64 | SPLIT train
	argRange // 0:16
	argMatch // all that follows MATCH
	argPath  // a file to write: 'rows.csv'
	argNode  // one node: 42 | 'x' | #17
	argWords // some of the choices: lru,clock
	argSizes // 64MiB,10%
	argRun   // the name of a run
)

// clause is a keyword with its argument. The clauses of a statement may come in any order.
type clause struct {
	word     string
	arg      argKind
	choices  []string // the words allowed as an argName; nil is any
	least    int64    // of an argInt
	most     int64    // of an argInt; 0 is any
	required bool
}

// statement is one entry of the language.
type statement struct {
	head    string // "NEIGHBORS" or "STATS CACHE"
	operand argKind
	clauses []clause
	exclude [][]string // groups of clauses of which one may stand
	help    string
	example string
	// plan builds the operators from metadata, and reports what is known to be wrong without
	// reading; nil is one operator that reads no block.
	plan func(x *execution) (*operator, error)
	run  func(ctx context.Context, x *execution) error
}

// directions are the three clauses that choose lists.
var directions = []clause{{word: "IN"}, {word: "OUT"}, {word: "BOTH"}}

func with(base []clause, more ...clause) []clause {
	return append(append([]clause(nil), base...), more...)
}

// registry is the only list of statements: the parser, help and "did you mean" read it.
var registry []statement

func init() { registry = slices.Concat(graphStatements(), storeStatements()) }

// graphStatements ask for nodes, edges and what belongs to them.
func graphStatements() []statement {
	return []statement{
		{head: "NEIGHBORS", operand: argNodes, plan: planNeighbors, run: runNeighbors,
			clauses: with(directions, clause{word: "HOPS", arg: argInt, least: 1, most: hopsMost},
				clause{word: "VIA", arg: argName}, clause{word: "COUNT"},
				clause{word: "LIMIT", arg: argInt}),
			help:    "neighbors of nodes, or all nodes within some hops; OUT if out-lists are kept",
			example: "NEIGHBORS 42 IN HOPS 2 COUNT;"},
		{head: "DEGREES", plan: planDegrees, run: runDegrees,
			clauses: with(directions, clause{word: "VIA", arg: argName},
				clause{word: "OF", arg: argNodes},
				clause{word: "TOP", arg: argInt, least: 1, most: degreesMost},
				clause{word: "LOG"}, clause{word: "BINS", arg: argInt, least: 1, most: binsMost}),
			exclude: [][]string{{"OF", "TOP", "LOG", "BINS"}, {"TOP", "BOTH"}},
			help:    "degrees of given nodes, the highest degrees, or the degree distribution",
			example: "DEGREES IN TOP 10;"},
		{head: "PATH", operand: argNode, plan: planPath, run: runPath,
			clauses: with(directions, clause{word: "TO", arg: argNode, required: true},
				clause{word: "VIA", arg: argName},
				clause{word: "MAX", arg: argInt, least: 1, most: pathMost}),
			help:    "a shortest path between two nodes; no rows if there is none",
			example: "PATH 42 TO 7 MAX 10;"},
		{head: "MATCH", operand: argMatch, plan: planMatch, run: runMatch,
			help:    "find a pattern that begins or ends at known nodes",
			example: "MATCH (a {id: 42})-[]-(b)-[]-(c) WHERE c.id <> 42 RETURN c.id, count(*);"},
		{head: "SAMPLE", operand: argNodes, plan: planSample, run: runSample,
			clauses: with(directions, clause{word: "FANOUT", arg: argFanout, required: true},
				clause{word: "SEED", arg: argInt}, clause{word: "EPOCH", arg: argInt, least: 1},
				clause{word: "BATCH", arg: argInt, least: 1},
				clause{word: "SIZE", arg: argInt, least: 1},
				clause{word: "STRATEGY", arg: argName,
					choices: []string{"uniform", "weighted", "full"}},
				clause{word: "SHOW", arg: argName,
					choices: []string{"dense", "layers", "edges", "io"}}),
			help:    "draw one mini-batch exactly as training would, and show it",
			example: "SAMPLE 42,7 FANOUT 2,2 SEED 7 SHOW dense;"},
		{head: "FEATURES", operand: argNodes, plan: planFeatures, run: runFeatures,
			clauses: []clause{{word: "COLUMNS", arg: argRange}, {word: "STATS"}},
			help:    "feature rows, or statistics of them",
			example: "FEATURES 42,43 COLUMNS 0:8;"},
		{head: "LABELS", operand: argNodes, plan: planLabels, run: runLabels,
			clauses: []clause{{word: "COUNTS"}},
			help:    "labels of nodes, or how many nodes have each",
			example: "LABELS SPLIT train COUNTS;"},
	}
}

// storeStatements ask for the store and the session.
func storeStatements() []statement {
	return []statement{
		{head: "STATS GRAPH", run: runStatsGraph,
			help: "node, edge, feature and file totals", example: "STATS GRAPH;"},
		{head: "STATS CACHE", run: runStatsCache,
			clauses: []clause{{word: "BY", arg: argName,
				choices: []string{"policy", "file", "partition", "epoch"}},
				{word: "RUN", arg: argRun}},
			help:    "caches of this session and of the newest run: requests, hits, bytes",
			example: "STATS CACHE BY file;"},
		{head: "STATS IO", run: runStatsIO,
			clauses: []clause{{word: "BY", arg: argName,
				choices: []string{"file", "phase", "op"}}},
			help: "reads of this session", example: "STATS IO BY op;"},
		{head: "STATS PARTITIONS", run: runStatsPartitions,
			clauses: []clause{{word: "TOP", arg: argInt, least: 1}},
			help:    "nodes and edges of each partition", example: "STATS PARTITIONS TOP 5;"},
		{head: "STATS BUCKETS", plan: planBuckets, run: runStatsBuckets,
			clauses: []clause{{word: "TOP", arg: argInt, least: 1}},
			help:    "edges between each two partitions, counted in one scan",
			example: "STATS BUCKETS TOP 5;"},
		{head: "SIMULATE CACHE", plan: planSimulate, run: runSimulate,
			clauses: []clause{{word: "POLICIES", arg: argWords, choices: cachesim.PolicyNames()},
				{word: "SIZES", arg: argSizes}, {word: "RUN", arg: argRun},
				{word: "SPLIT", arg: argName}, {word: "FANOUT", arg: argFanout},
				{word: "BATCH", arg: argInt, least: 1}, {word: "SEED", arg: argInt},
				{word: "EPOCHS", arg: argInt, least: 1}, {word: "BATCHES", arg: argInt, least: 1}},
			help:    "hits of caches of any policy and size in a training, from its batches",
			example: "SIMULATE CACHE POLICIES lru,s3fifo,belady SIZES 10%,64MiB FANOUT 5,5;"},
		{head: "TRACE IO", run: runTraceIO,
			clauses: []clause{{word: "ON"}, {word: "OFF"}, {word: "LAST", arg: argInt, least: 1}},
			exclude: [][]string{{"ON", "OFF", "LAST"}},
			help:    "record the reads of this session, and show the last ones",
			example: "TRACE IO ON;"},
		{head: "RESET STATS", run: runResetStats,
			help: "make the counters of this session begin anew", example: "RESET STATS;"},
		{head: "SET", operand: argName, run: runSet,
			clauses: []clause{{word: "TO", arg: argName, required: true}},
			help:    "change a setting of this session: seed", example: "SET seed TO 7;"},
		{head: "RUNS", run: runRuns,
			clauses: []clause{{word: "PLOT", arg: argRun}, {word: "METRIC", arg: argName}},
			help:    "the trainings on this store, or a curve of one",
			example: "RUNS;"},
		{head: "BLOCK", operand: argFile, plan: planBlock, run: runBlock,
			clauses: []clause{{word: "AT", arg: argInt, required: true}, {word: "HEX"},
				{word: "DECODE"}},
			exclude: [][]string{{"HEX", "DECODE"}},
			help:    "one block of a file of the store, raw or field by field",
			example: "BLOCK topology/in.csc AT 1 DECODE;"},
		{head: "CHECK", plan: planCheck, run: runCheck,
			clauses: []clause{{word: "FULL"}, {word: "OF", arg: argFile}},
			help:    "verify checksums, and with FULL what the bytes mean",
			example: "CHECK FULL;"},
		{head: "DESCRIBE", run: runDescribe,
			clauses: []clause{{word: "FILES"}, {word: "TYPES"}},
			exclude: [][]string{{"FILES", "TYPES"}},
			help:    "what the store holds: features, labels, splits; its files; its edge types",
			example: "DESCRIBE FILES;"},
		{head: "HELP", run: runHelp,
			help: "the statements, with an example each", example: "HELP;"},
	}
}
