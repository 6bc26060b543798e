package superbatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gdb/internal/mem"
	"gdb/sample"
)

// Rehearsal is the result of planning a superbatch in memory.
type Rehearsal struct {
	Requests uint64        // rows that batches ask for
	Hits     uint64        // requests whose rows are in the cache
	Elapsed  time.Duration // time of finding next uses and deciding, without files
}

// Rehearse plans a superbatch of the given batches, for an empty cache of this number of slots and
// a graph of this number of nodes. With a hop of 1 the plan is exact. With a larger hop it is the
// k-hop approximation (Ginex++): hop batches are planned as one, so the cache changes only after
// them, and a row that several of them miss is read for each. A node may stand in a batch once.
//
// Memory is counted in budget, which may be nil: 4 bytes per node of the graph, 4 per request, or
// 12 with a hop of more than 1, and what the plan of the cache takes.
func Rehearse(ctx context.Context, batches [][]sample.NodeID, nodes uint64, slots, hop int,
	budget *mem.Budget) (r Rehearsal, err error) {
	p, cache, err := newRehearsal(batches, nodes, slots, hop, budget)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.arena.Free(), cache.Close()) }()
	r.Requests = uint64(len(p.next))
	begun := time.Now()
	if err := p.findNextUses(ctx, batches, hop); err != nil {
		return r, err
	}
	if err := cache.Begin(len(p.turns), p.bits); err != nil {
		return r, err
	}
	for i := range p.turns {
		hits, err := p.step(cache, i)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return r, fmt.Errorf("superbatch: rehearse: %w", err)
		}
		r.Hits += hits
	}
	r.Elapsed = time.Since(begun)
	return r, nil
}

// rehearser holds the memory of Rehearse.
type rehearser struct {
	arena *mem.Arena
	last  []uint32 // next use of each node, going backward
	next  []uint32 // next use of each request
	bits  int

	// union and count are for a hop of more than 1: the nodes of batches that are planned as one,
	// each node once, and the number of those batches that have it.
	union []sample.NodeID
	count []uint32
	turns []rehearsedTurn // in reverse order
	used  int             // entries used of next and union

	changes changes
}

// rehearsedTurn is a batch, or several that are planned as one.
type rehearsedTurn struct {
	nodes []sample.NodeID
	first int // where its next uses begin in rehearser.next
}

func newRehearsal(batches [][]sample.NodeID, nodes uint64, slots, hop int,
	budget *mem.Budget) (p *rehearser, c *cacheState, err error) {
	requests := 0
	for _, b := range batches {
		requests += len(b)
	}
	if hop < 1 || slots < 0 || len(batches) > batchesMost || requests == 0 {
		return nil, nil, fmt.Errorf("superbatch: rehearse %d batches of %d requests with %d slots "+
			"and a hop of %d", len(batches), requests, slots, hop)
	}
	bytes := 4*int64(nodes) + 4*int64(requests)
	if hop > 1 {
		bytes += 8 * int64(requests)
	}
	arena, err := mem.NewArena(budget, "rehearsal of a superbatch", bytes)
	if err != nil {
		return nil, nil, err
	}
	if c, err = newCacheState(slots, budget); err != nil {
		return nil, nil, errors.Join(err, arena.Free())
	}
	b := arena.Bytes()
	p = &rehearser{arena: arena, last: carve[uint32](&b, int(nodes)),
		next: carve[uint32](&b, requests)}
	if hop > 1 {
		p.union, p.count = carve[sample.NodeID](&b, requests), carve[uint32](&b,
			requests)
	}
	return p, c, nil
}

// findNextUses finds the next use of each request, going backward over the batches.
func (p *rehearser) findNextUses(ctx context.Context, batches [][]sample.NodeID, hop int) error {
	turn, most := (len(batches)+hop-1)/hop, 0
	for group := range slices.Chunk(batches, hop) {
		n := 0
		for _, b := range group {
			n += len(b)
		}
		most = max(most, n)
	}
	if p.bits = useBits(turn, most); p.bits < 0 {
		return fmt.Errorf("superbatch: rehearse: %d batches with a hop of %d are too many",
			len(batches), hop)
	}
	for i := range p.last {
		p.last[i] = uint32(turn+1) << p.bits
	}
	for first := (turn - 1) * hop; first >= 0; first, turn = first-hop, turn-1 {
		group := batches[first:min(first+hop, len(batches))]
		for i, b := range group {
			for _, v := range b {
				if uint64(v) >= uint64(len(p.last)) {
					return fmt.Errorf("superbatch: rehearse: batch %d has node %d of %d", first+i,
						v, len(p.last))
				}
			}
		}
		nodes, once := group[0], true
		if hop > 1 {
			nodes = p.join(uint32(turn), group)
		} else {
			once = p.one(uint32(turn), nodes)
		}
		if !once {
			return fmt.Errorf("superbatch: rehearse: batch %d has a node twice", first)
		}
		p.turns = append(p.turns, rehearsedTurn{nodes, p.used})
		p.used += len(nodes)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// one finds the next uses of a batch. It returns false if a node stands in it twice.
func (p *rehearser) one(turn uint32, nodes []sample.NodeID) bool {
	once, next := true, p.next[p.used:p.used+len(nodes)]
	for i, v := range nodes {
		next[i], p.last[v] = p.last[v], turn<<p.bits|uint32(i)
		once = once && next[i]>>p.bits != turn
	}
	return once
}

// join plans batches as one: it returns the nodes of all, and counts for each the batches with it.
func (p *rehearser) join(turn uint32, group [][]sample.NodeID) []sample.NodeID {
	n := p.used
	for _, b := range group {
		for _, v := range b {
			next := p.last[v]
			if next>>p.bits == turn {
				p.count[p.used+int(next&(1<<p.bits-1))]++
				continue
			}
			p.last[v] = turn<<p.bits | uint32(n-p.used)
			p.union[n], p.count[n], p.next[n] = v, 1, next
			n++
		}
	}
	return p.union[p.used:n]
}

// step decides what the cache keeps after turn i, counted from 0, and returns the turn's hits.
func (p *rehearser) step(cache *cacheState, i int) (hits uint64, err error) {
	t := p.turns[len(p.turns)-1-i]
	end := t.first + len(t.nodes)
	err = cache.Step(uint32(i+1), t.nodes, p.next[t.first:end], &p.changes)
	if err != nil || p.count == nil {
		return uint64(p.changes.Hits), err
	}
	for k, s := range p.changes.From {
		if s != 0 {
			hits += uint64(p.count[t.first+k])
		}
	}
	return hits, nil
}
