// Package cachesim counts how many rows feature caches would have found, without the features: it
// replays the nodes that batches ask for through cache policies of several sizes. Hits and
// evictions equal those of rowcache.New for the same gathers, one at a time. Belady is an upper
// bound for all policies that read rows when they are asked for.
package cachesim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// Trace is the nodes that batches ask for. It is read once for each policy and size.
type Trace struct {
	// Nodes is the number of nodes of the graph. All nodes of batches are below it.
	Nodes uint64
	// Each calls fn with the nodes of each batch, in order, and returns its first error, or one of
	// its own. It is called several times, and must give the same batches each time.
	Each func(fn func(nodes []sample.NodeID) error) error
}

// Policy is a policy to replay a trace through.
type Policy struct {
	// Name is the policy's name in results.
	Name string
	// New returns a new policy; it is called for each capacity. Nil stands for the bound, Belady.
	New func() rowcache.Policy
}

// Belady keeps the rows that are asked for soonest (L. A. Belady, A Study of Replacement Algorithms
// for a Virtual-Storage Computer), batch by batch: rows held at the start of a batch are hits, and
// after it the cache keeps, of the rows held and the rows of the batch, those that are needed next.
// No policy that begins empty has more hits. A node may be in a batch once.
var Belady = Policy{Name: "belady"}

// online lists constructors of the policies that need to know nothing in advance. Training uses
// SIEVE; the others are here to be compared with it.
var online = []func() rowcache.Policy{newLRU, newCLOCK, newS3FIFO, rowcache.NewSIEVE}

// Names of policies that are not online, except Belady.
const (
	None          = "none"           // holds nothing
	StaticDegree  = "static"         // the nodes of rowcache.FindHot: those in the most lists
	StaticSampled = "static-sampled" // the nodes that a trial asked for most: rowcache.HotByTrial
)

// PolicyNames returns the names that ByName knows, with the bound last.
func PolicyNames() []string {
	names := []string{None, StaticDegree, StaticSampled}
	for _, make := range online {
		names = append(names, make().Name())
	}
	return append(names, Belady.Name)
}

// ByName returns the policy of this name. hot returns the nodes that a static policy holds, and is
// called only for these.
func ByName(name string, hot func() ([]sample.NodeID, error)) (Policy, error) {
	switch name {
	case Belady.Name:
		return Belady, nil
	case None:
		return Static(name, nil), nil
	case StaticDegree, StaticSampled:
		nodes, err := hot()
		return Static(name, nodes), err
	}
	return Online(name)
}

// Online returns the policy of this name that needs to know nothing in advance.
func Online(name string) (Policy, error) {
	for _, make := range online {
		if make().Name() == name {
			return Policy{Name: name, New: make}, nil
		}
	}
	return Policy{}, fmt.Errorf("cachesim: unknown cache policy %q: known are %s", name,
		strings.Join(PolicyNames(), ", "))
}

// Static returns a policy of this name that holds the first nodes of hot.
func Static(name string, hot []sample.NodeID) Policy {
	return Policy{Name: name, New: func() rowcache.Policy { return rowcache.NewStatic(hot) }}
}

// Capacity is the size of a cache: a number of rows, or a number of bytes including everything, for
// rows of Dim values. How many rows fit in the bytes depends on the policy (see rowcache.RowsIn).
type Capacity struct {
	Rows  int
	Bytes int64
	Dim   int
}

// rows returns the number of rows of the cache.
func (c Capacity) rows(slotBytes int) int {
	if c.Bytes > 0 {
		return rowcache.RowsIn(c.Bytes, c.Dim, slotBytes)
	}
	return c.Rows
}

func (c Capacity) validate() error {
	switch {
	case c.Rows < 0 || c.Bytes < 0 || c.Rows > 0 && c.Bytes > 0:
		return fmt.Errorf("cachesim: capacity of %d rows and %d bytes: give one of them", c.Rows,
			c.Bytes)
	case c.Bytes > 0 && c.Dim < 1:
		return fmt.Errorf("cachesim: capacity of %d bytes with rows of %d values: give their "+
			"number", c.Bytes, c.Dim)
	}
	return nil
}

// Result is the outcome of a policy with a capacity.
type Result struct {
	Policy   string
	Capacity Capacity
	Rows     int    // rows that the cache has room for
	Requests uint64 // rows asked for
	Hits     uint64 // requests whose row was held
	Loaded   uint64 // rows loaded before the first batch, which are not requests
	// Evicted counts rows that were replaced by others. It is -1 for Belady, which leaves open
	// which of the rows that nobody asks for again are replaced.
	Evicted int64
	// Elapsed is how long the replay took; for Belady, the time of all capacities together.
	Elapsed time.Duration
}

// HitRatio returns the share of requests that were hits. Run returns no result without requests.
func (r Result) HitRatio() float64 { return float64(r.Hits) / float64(r.Requests) }

// RowsRead returns how many rows a cache would have read: missed rows, and those loaded before.
func (r Result) RowsRead() uint64 { return r.Requests - r.Hits + r.Loaded }

// Run replays a trace through each policy with each capacity, and returns the results policy by
// policy.
//
// Memory is counted in budget, which may be nil: 4 bytes per node of the graph and, for one replay
// at a time, 4 bytes per row of the cache and what the policy takes. Belady takes 8 bytes per batch
// and capacity, which are not counted.
//
// A request takes a few random accesses to memory. Belady reads the trace once for all capacities
// and, at each batch, goes back for each capacity over the batches before, at most to one after
// which the cache is full.
// after which the cache is full.
func Run(ctx context.Context, trace Trace, policies []Policy, capacities []Capacity,
	budget *mem.Budget) (results []Result, err error) {
	for _, c := range capacities {
		if err := c.validate(); err != nil {
			return nil, err
		}
	}
	arena, err := mem.NewArena(budget, "nodes of a cache simulation", int64(trace.Nodes)*4)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, arena.Free()) }()
	perNode := mem.View[uint32](arena.Bytes())
	for _, p := range policies {
		if p.New == nil {
			if err := clearAll(ctx, perNode); err != nil {
				return nil, err
			}
			part, err := belady(ctx, trace, p, capacities, perNode)
			if err != nil {
				return nil, err
			}
			results = append(results, part...)
			continue
		}
		for _, c := range capacities {
			if err := clearAll(ctx, perNode); err != nil {
				return nil, err
			}
			r, err := replayed(ctx, trace, p, c, perNode, budget)
			if err != nil {
				return nil, fmt.Errorf("cachesim: policy %s: %w", p.Name, err)
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// ctxStep is how many nodes are done between checks of the context.
const ctxStep = 1 << 16

// clearAll clears perNode, which has 4 bytes per node.
func clearAll(ctx context.Context, perNode []uint32) error {
	for part := range slices.Chunk(perNode, 64*ctxStep) {
		if err := ctx.Err(); err != nil {
			return err
		}
		clear(part)
	}
	return nil
}

// replayed replays a trace through one cache; where is zeroed memory of 4 bytes per node.
func replayed(ctx context.Context, trace Trace, p Policy, c Capacity, where []uint32,
	budget *mem.Budget) (r Result, err error) {
	begun := time.Now()
	policy := p.New()
	rows := c.rows(policy.SlotBytes())
	bytes := int64(rows) * int64(4+policy.SlotBytes())
	if budget != nil {
		if err := budget.Reserve("slots of a cache simulation", bytes); err != nil {
			return r, err
		}
		defer budget.Release(bytes)
	}
	s := &replay{policy: policy, where: where, held: make([]sample.NodeID, rows)}
	s.result = Result{Policy: p.Name, Capacity: c, Rows: rows}
	if err := s.load(); err != nil {
		return r, err
	}
	err = trace.Each(func(nodes []sample.NodeID) error {
		return s.gather(ctx, nodes)
	})
	if err == nil && s.result.Requests == 0 {
		err = errNothing
	}
	s.result.Elapsed = time.Since(begun)
	return s.result, err
}

var errNothing = errors.New("the trace asks for nothing: give it batches")

// replay is a cache without its rows.
type replay struct {
	policy rowcache.Policy
	where  []uint32 // 1 + the slot of each node; 0 if it is not held
	held   []sample.NodeID
	used   int
	result Result

	slots  []uint32 // slots of the hits of a batch
	missed []sample.NodeID
}

// load fills the first slots with the rows that the policy starts with.
func (s *replay) load() error {
	for _, v := range s.policy.Start(s.held) {
		if uint64(v) >= uint64(len(s.where)) || s.where[v] != 0 {
			return fmt.Errorf("load node %d of %d: out of range, or twice in the list", v,
				len(s.where))
		}
		s.held[s.used] = v
		s.used++
		s.where[v] = uint32(s.used)
	}
	s.result.Loaded = uint64(s.used)
	return nil
}

// gather does with the policy what a cache does for one gather.
func (s *replay) gather(ctx context.Context, nodes []sample.NodeID) error {
	s.slots, s.missed = s.slots[:0], s.missed[:0]
	for i, v := range nodes {
		if i%ctxStep == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if uint64(v) >= uint64(len(s.where)) {
			return outOfRange(v, len(s.where))
		}
		if at := s.where[v]; at != 0 {
			s.slots = append(s.slots, at-1)
		} else {
			s.missed = append(s.missed, v)
		}
	}
	s.policy.Begin(nodes)
	s.policy.Hits(s.slots)
	s.result.Requests += uint64(len(nodes))
	s.result.Hits += uint64(len(s.slots))
	for i, v := range s.missed {
		if i%ctxStep == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if s.where[v] != 0 { // twice in this batch
			continue
		}
		slot, keep := s.policy.Place(v)
		if !keep {
			continue
		}
		bug.Check(int(slot) <= s.used && int(slot) < len(s.held),
			"cachesim: policy placed a row in slot %d, %d are used", slot, s.used)
		if int(slot) == s.used {
			s.used++
		} else {
			s.where[s.held[slot]] = 0
			s.result.Evicted++
		}
		s.held[slot], s.where[v] = v, slot+1
	}
	return nil
}

func outOfRange(v sample.NodeID, nodes int) error {
	return fmt.Errorf("node %d is out of range: the graph has %d nodes", v, nodes)
}
