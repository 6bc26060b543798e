// Package web answers questions about a store over HTTP, and as tools of the Model Context
// Protocol: what runs predict of nodes, how they score edges, neighbors, and statements.
//
// A Service is an open store with its runs. endpoints is the table of what it answers: routes,
// limits, the OpenAPI document and the tools are made of it. An endpoint is a file.
package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gdb"
	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/shell/graph"
	"gdb/train"
	"gdb/train/nearest"
	"gdb/train/runs"
)

// Options say what is served.
type Options struct {
	Store  *layout.Store
	Device blockdev.Device
	// Memory bounds the process, in bytes.
	Memory  int64
	Threads int
	Version string // the version of gdb
	// Runs are the runs that answer, each opened once. The first that predicts nodes, and the first
	// that predicts links, are taken where a request names none.
	Runs []string
	// Follows halves what is open for a snapshot, so that the next one can be opened beside it.
	Follows bool
	// Notes is called with what the user should know and did no harm; nil drops it.
	Notes func(text string)
}

// Service answers the endpoints for one store. It may be used from any goroutine.
type Service struct {
	opt Options
	db  *gdb.DB
	// budget bounds the process. lookups is its part for statements, and requests for what clients
	// send, what they get, and their connections.
	budget, lookups, requests *mem.Budget

	nodes   []*served // runs that predict nodes
	links   []*keptRun
	metrics *metrics
	turns   map[string]chan struct{} // of endpoints that few requests run at a time, by name
	pages   chan struct{}            // the turns of pages

	uses   sync.WaitGroup // requests under way, if it is followed
	closed sync.Once
}

// served is a run that predicts nodes.
type served struct {
	*train.Predictor
	batcher *batcher // nil if it does not predict new nodes
}

// Open opens the store's files and the runs. The caller closes the store and the device after
// Close.
func Open(ctx context.Context, opt Options) (s *Service, err error) {
	if opt.Notes == nil {
		opt.Notes = func(string) {}
	}
	s = &Service{opt: opt, budget: mem.NewProcessBudget(opt.Memory)}
	s.requests = s.budget.Part(shareOut(s.budget.Limit()).requests)
	s.metrics = newMetrics(s)
	s.turns, s.pages = map[string]chan struct{}{}, make(chan struct{}, pagesAtOnce)
	for _, e := range endpoints {
		if e.atOnce > 0 {
			s.turns[e.name] = make(chan struct{}, e.atOnce)
		}
	}
	return s, s.open(ctx)
}

// open opens the runs and the database, or closes what it has opened.
func (s *Service) open(ctx context.Context) (err error) {
	parts := shareOut(s.budget.Limit())
	if s.opt.Follows {
		parts = parts.halved()
	}
	s.lookups = s.budget.Part(parts.lookups)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("serve: %w", err), s.Close())
		}
	}()
	if err := s.openRuns(ctx, parts); err != nil {
		return err
	}
	s.db, err = gdb.OpenOn(ctx, s.opt.Store, s.opt.Device, gdb.Options{Memory: parts.lookups,
		Threads: s.opt.Threads, Budget: s.lookups, Vectors: s.vectorsOf,
		Nearest: graph.NearestBy(nearest.Open), Predict: s.predictNodes})
	s.budget.CollectHeap() // what opening took
	return err
}

// shares are the parts of the memory, in bytes.
type shares struct{ kept, unseen, lookups, requests, computing int64 }

// unseenLeast is the part for new nodes that is enough whatever the memory is.
const unseenLeast = 64 << 20

// shareOut divides the memory of a process that is not the program's own. While runs are opened,
// nothing is looked up.
func shareOut(all int64) shares {
	p := shares{kept: all / 2, unseen: max(all/8, min(all/4, unseenLeast)), requests: all / 8}
	p.lookups = all - p.kept - p.unseen - p.requests
	p.computing = all - p.kept - p.unseen
	return p
}

// halved returns the parts of one of two snapshots that are open at a time.
func (p shares) halved() shares {
	return shares{kept: p.kept / 2, unseen: p.unseen / 2, lookups: p.lookups / 2,
		requests: p.requests, computing: p.computing / 2}
}

// openRuns opens the runs.
func (s *Service) openRuns(ctx context.Context, parts shares) error {
	kept, unseen := s.budget.Part(parts.kept), s.budget.Part(parts.unseen)
	for _, name := range s.opt.Runs {
		if runs.PredictsLinks(s.opt.Store, name) {
			if err := s.keep(ctx, name, kept); err != nil {
				return err
			}
			continue
		}
		p, err := train.OpenPredictor(ctx, s.opt.Store, s.opt.Device, train.PredictorConfig{
			Run: name, Limits: train.Limits{Memory: parts.computing + mem.ProcessBytes,
				Threads: s.opt.Threads, Notes: s.opt.Notes},
			Computing: s.budget.Part(parts.computing), Kept: kept, Unseen: unseen})
		if err != nil {
			text := ""
			if s.opt.Follows {
				text = ", of which following keeps half for the next snapshot"
			}
			return fmt.Errorf("%w (runs are opened in %s, a part of the memory%s)", err,
				mem.FormatSize(parts.computing+mem.ProcessBytes), text)
		}
		one := &served{Predictor: p}
		s.nodes = append(s.nodes, one)
		if why := p.PredictsUnseen(); why != nil {
			s.opt.Notes(fmt.Sprintf("run %s predicts the nodes of the store, and no new ones: %v",
				name, why))
			continue
		}
		one.batcher = newBatcher(p)
	}
	return nil
}

// Close closes all that was opened. No request may be running. Further calls do nothing.
func (s *Service) Close() (err error) {
	s.closed.Do(func() { err = s.close() })
	return err
}

func (s *Service) close() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	for _, r := range s.nodes {
		if r.batcher != nil {
			r.batcher.close()
		}
		err = errors.Join(err, r.Close())
	}
	for _, r := range s.links {
		err = errors.Join(err, r.vectors.Close())
	}
	return err
}

// run returns the run of nodes of a name; of "" the first.
func (s *Service) run(name string) (*served, error) {
	var names []string
	for _, r := range s.nodes {
		if r.Run() == name || name == "" {
			return r, nil
		}
		names = append(names, r.Run())
	}
	return nil, noRun(name, "nodes", names)
}

// noRun returns the error that a run is not served.
func noRun(name, what string, names []string) error {
	f := &failure{Status: statusNotFound, What: "no run that predicts " + what + " is served",
		Do: "serve one with --run NAME"}
	if name != "" && len(names) > 0 {
		f.What = fmt.Sprintf("run %q is not served, or does not predict %s", name, what)
		f.Do = fmt.Sprintf("ask one of %q, or serve it with --run", names)
	}
	f.Where = "run"
	return f
}

// predictNodes is a graph.Predict, for statements: only runs that are served predict.
//
//lint:parameters it is a graph.Predict of package shell
func (s *Service) predictNodes(ctx context.Context, _ *layout.Store, _ blockdev.Device, run string,
	calibrated bool, nodes []layout.NodeID, _ int64,
	emit func(v layout.NodeID, prediction any, probability float64) error) error {
	r, err := s.run(run)
	if err != nil {
		return err
	}
	nodes = slices.Clone(nodes)
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	all, err := r.Predict(ctx, nodes, calibrated)
	if err != nil {
		return err
	}
	for i, p := range all {
		if err := emit(nodes[i], p.Value, p.Probability(r.Labels())); err != nil {
			return err
		}
	}
	return nil
}
