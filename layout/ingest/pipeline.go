package ingest

import (
	"context"
	"errors"
	"io"

	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/stream"
	"gdb/layout/splits"
)

// pipeline is one ingest. Its work is a sequence of steps; each writes files below tmp/ingest,
// makes them durable, and is then recorded in the journal with what it found out.
type pipeline struct {
	*steps.Work
	src   source.Source
	info  *source.Info
	opt   Options
	codec stream.EdgeCodec
	draw  *splits.EdgeDraw // of the edges' splits; nil for none
	// hash is ids.Hash, or a weaker one in tests.
	hash func(seed uint64, external []byte) uint64
	// random gives the identity of the store, and nothing else.
	random io.Reader

	hashSeed uint64 // of the scan that comes next
}

// all runs the steps of the ingest, but for the last: the store's coming into being.
func (p *pipeline) all(ctx context.Context) (*results, error) {
	r := &results{}
	var err error
	if r.scan, err = p.scan(ctx); err != nil {
		return nil, err
	}
	m, err := p.number(ctx, r)
	if err != nil {
		return nil, err
	}
	return r, errors.Join(p.attachAll(ctx, r, m), m.free())
}

// attachAll runs the steps that need node numbers. Those that may meet bad input come first, so
// that it is found before the long work.
func (p *pipeline) attachAll(ctx context.Context, r *results, m *nodeMap) (err error) {
	if err := p.checkMade(m); err != nil {
		return err
	}
	if r.labels, err = p.labels(ctx, m); err != nil {
		return err
	}
	if r.splits, err = p.splits(ctx, m); err != nil {
		return err
	}
	for i := range p.info.Features {
		f, err := p.features(ctx, m, i)
		if err != nil {
			return err
		}
		r.features = append(r.features, f)
	}
	if r.topology, err = p.topology(ctx, r.scan, m); err != nil {
		return err
	}
	if err := p.edgeSplits(ctx, r, m); err != nil {
		return err
	}
	if source.IsMade(p.opt.Features) {
		f, err := p.madeFeatures(ctx, m, r.topology)
		if err != nil {
			return err
		}
		r.features = append(r.features, f)
	}
	r.out, err = p.outTopology(ctx, r.topology, m)
	return err
}

// results is what the steps found out, for the catalog.
type results struct {
	scan     *scanResult
	ids      *idsResult
	labels   *labelsResult
	splits   *splitsResult
	features []*featuresResult
	topology *topologyResult
	divided  splits.EdgeResult
	out      *topologyResult
}
