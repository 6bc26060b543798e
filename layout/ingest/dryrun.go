package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/layout/edgefile"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/tables"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Plan is what a dry run prints: what was found, what will be written, memory and disk.
type Plan struct {
	Info         *source.Info
	Nodes, Edges uint64 // as known; 0: see Info.EdgesAbout, or known after reading
	MemoryBytes  int64
	DiskBytes    int64 // of the store
	TempBytes    int64 // of tmp/ at its largest
	Files        []string
	LeastMemory  int64 // the least --memory that would do
}

// DryRun plans an ingest and writes nothing.
func DryRun(ctx context.Context, fs vfs.FS, opt Options) (plan *Plan, err error) {
	src, err := source.Open(ctx, fs, opt.read())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	p, err := newPipeline(fs, src, opt)
	if err != nil {
		return nil, err
	}
	return p.plan(), nil
}

// Assumptions of a plan where the source does not say how much it holds.
const (
	edgesPerNode    = 8
	idBytes         = 24 // of both dictionary files, with an id of ten bytes
	idTempBytes     = 2 * 32
	topologyPercent = 70 // of 4 bytes an edge, after delta coding
	cellBytes       = 8  // of a value of a column of edges
	placeBytes      = 48 // of the place of an edge, and of a row besides its values
)

// plan estimates. Counts that the source does not know are guessed from the beginnings of its files
// and their sizes.
func (p *pipeline) plan() *Plan {
	plan := &Plan{Info: p.info, Nodes: p.info.Nodes, Edges: p.info.Edges,
		MemoryBytes: p.Memory.Total, LeastMemory: steps.LeastBytes}
	edges, nodes := int64(plan.Edges), int64(plan.Nodes)
	if edges == 0 {
		edges = int64(p.info.EdgesAbout)
	}
	if nodes == 0 {
		nodes = edges / edgesPerNode
	}
	if p.addsReverse() {
		edges *= 2
	}
	p.planTopology(plan, edges)
	joined := p.info.TextIDs && !p.info.RowIDs
	permuted := p.opt.Partitioner == "random" || p.opt.Streams()
	if joined || permuted || !p.info.RowIDs {
		plan.Files = append(plan.Files, "ids/forward.ids", "ids/reverse.ids")
		plan.DiskBytes += nodes * idBytes
	}
	for _, name := range p.edgeSplitNames() {
		plan.Files = append(plan.Files, edgefile.Path(name))
	}
	if len(p.edgeSplitNames()) > 0 {
		plan.DiskBytes += edges * int64(edgefile.EdgeBytes(p.codec.Typed))
	}
	codec := p.codec
	codec.RowBytes = p.carriedRow(idText)
	record := int64(1+codec.Payload()) * 8
	plan.TempBytes = edges * record
	if joined {
		// The edges before and after a join are there at once, with both ends as keys.
		plan.TempBytes = 2*edges*(record+8) + nodes*idTempBytes
	} else if p.opt.Both || permuted && !p.info.RowIDs {
		plan.TempBytes *= 2
	}
	for _, t := range p.info.EdgeTables {
		plan.Files = append(plan.Files, tables.EdgePaths(&t)...)
		bytes := edges * cellBytes * int64(len(t.Columns)) / int64(len(p.info.EdgeTables))
		plan.DiskBytes += bytes
		if codec.RowBytes == 0 {
			plan.TempBytes += 3*bytes + edges*placeBytes
		}
	}
	for _, f := range p.info.Features {
		bytes := nodes * int64(f.Width()) * 4
		width := int64(4)
		if p.opt.FeatureDType == "f16" || p.opt.FeatureDType == "bf16" {
			width = 2
		}
		plan.DiskBytes += nodes * int64(f.Width()) * width * 101 / 100
		plan.Files = append(plan.Files, "features/"+f.Name+".rows", "features/"+f.Name+".crc")
		if permuted || !p.info.RowIDs {
			plan.TempBytes = max(plan.TempBytes, edges*record+bytes*104/100)
		}
	}
	if p.info.Labels != nil {
		plan.DiskBytes += nodes * 4
		plan.Files = append(plan.Files, "labels/labels.rows", "labels/labels.crc")
	}
	if p.opt.Streams() && p.again == nil { // the store before its nodes are in order
		plan.TempBytes += plan.DiskBytes
	}
	slices.Sort(plan.Files)
	return plan
}

func (p *pipeline) planTopology(plan *Plan, edges int64) {
	bytes := edges * 4 * topologyPercent / 100
	if p.codec.Typed {
		bytes += edges * 2
	}
	if p.codec.Weighted {
		bytes += edges * 4
	}
	if p.codec.Timed {
		bytes += edges * 8
	}
	directions := []string{"in"}
	files := map[string]string{"in": "csc", "out": "csr"}
	if p.opt.Both {
		directions = append(directions, "out")
	}
	for _, d := range directions {
		plan.Files = append(plan.Files, fmt.Sprintf("topology/%s.%s", d, files[d]),
			fmt.Sprintf("topology/%s.idx", d))
		plan.DiskBytes += bytes
	}
}
