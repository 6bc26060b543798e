package query

import (
	"context"

	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/match"
	"gdb/shell/result"
)

// planners holds the planner of each statement of the language, by its head.
var planners = map[string]exec.Planner{
	"NEIGHBORS":        planNeighbors,
	"DEGREES":          planDegrees,
	"PATH":             planPath,
	"MATCH":            match.Plan,
	"SAMPLE":           planSample,
	"FEATURES":         planFeatures,
	"LABELS":           planLabels,
	"NEAREST":          planNearest,
	"SCORE":            planScore,
	"STATS GRAPH":      exec.Session(runStatsGraph),
	"STATS CACHE":      exec.Session(runStatsCache),
	"STATS IO":         exec.Session(runStatsIO),
	"STATS PARTITIONS": exec.Session(runStatsPartitions),
	"STATS BUCKETS":    planBuckets,
	"SIMULATE CACHE":   planSimulate,
	"TRACE IO":         exec.Session(runTraceIO),
	"RESET STATS":      exec.Session(runResetStats),
	"SET":              exec.Session(runSet),
	"RUNS":             exec.Session(runRuns),
	"BLOCK":            planBlock,
	"CHECK":            planCheck,
	"DESCRIBE":         exec.Session(runDescribe),
	"HELP":             exec.Session(runHelp),
}

// New prepares a parsed statement to run. Its rows go to render. seed is the seed of a statement
// that names none.
func New(ctx context.Context, g *graph.Graph, p *lang.Parsed, seed uint64,
	render result.Renderer) *exec.Execution {
	return exec.New(ctx, g, p, planners[p.Statement.Head], seed, render)
}
