package shell

import "context"

// definition is how a statement is planned and run.
type definition struct {
	// plan builds the operators from metadata, and reports what is known to be wrong without
	// reading; nil is one operator that reads no block.
	plan func(x *execution) (*operator, error)
	run  func(ctx context.Context, x *execution) error
}

// definitions are those of all statements, by head.
var definitions map[string]definition

func init() {
	definitions = map[string]definition{
		"NEIGHBORS":        {planNeighbors, runNeighbors},
		"DEGREES":          {planDegrees, runDegrees},
		"PATH":             {planPath, runPath},
		"MATCH":            {planMatch, runMatch},
		"SAMPLE":           {planSample, runSample},
		"FEATURES":         {planFeatures, runFeatures},
		"LABELS":           {planLabels, runLabels},
		"STATS GRAPH":      {nil, runStatsGraph},
		"STATS CACHE":      {nil, runStatsCache},
		"STATS IO":         {nil, runStatsIO},
		"STATS PARTITIONS": {nil, runStatsPartitions},
		"STATS BUCKETS":    {planBuckets, runStatsBuckets},
		"SIMULATE CACHE":   {planSimulate, runSimulate},
		"TRACE IO":         {nil, runTraceIO},
		"RESET STATS":      {nil, runResetStats},
		"SET":              {nil, runSet},
		"RUNS":             {nil, runRuns},
		"BLOCK":            {planBlock, runBlock},
		"CHECK":            {planCheck, runCheck},
		"DESCRIBE":         {nil, runDescribe},
		"HELP":             {nil, runHelp},
	}
}
