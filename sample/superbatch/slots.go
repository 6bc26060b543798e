package superbatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/sample/rowcache"
)

// slotRows are the rows of the cache, one in each slot. The Loader owns them. The stages of an
// assembly copy rows from and to slots, and batches that the consumer holds may refer to rows
// there.
type slotRows struct {
	cfg     *Config
	dim     int
	arena   *mem.Arena
	rows    []float32
	have    int  // slots that are left: large batches take some, see limit
	trimmed bool // only the first SlotsKept slots have memory
	spilled *spilled

	requests, hits, kept atomic.Uint64

	mu struct {
		sync.Mutex
		closed bool
		lent   int // batches with rows in slots
	}
}

// open takes the memory of all slots.
func (r *slotRows) open() (err error) {
	r.arena, err = mem.NewArena(r.cfg.Budget, "feature cache", 4*int64(r.cfg.Slots)*int64(r.dim))
	if err == nil {
		r.rows, r.have = mem.View[float32](r.arena.Bytes()), r.cfg.Slots
	}
	return err
}

// unkept returns which bytes of the slots are those that are not kept.
func (r *slotRows) unkept() (first, end int) {
	return 4 * min(r.cfg.SlotsKept, r.have) * r.dim, 4 * r.have * r.dim
}

// trim gives back the memory of the slots that are not kept. It returns whether it did: their rows
// are lost then.
func (r *slotRows) trim() (lost bool, err error) {
	if r.trimmed {
		return false, nil
	}
	r.trimmed = true
	return true, r.arena.Discard(r.unkept())
}

// grow takes the memory of all slots again, and reads back the rows that were spilled. It may be
// called again after an error.
func (r *slotRows) grow(ctx context.Context) error {
	first, end := r.unkept()
	if r.trimmed {
		if err := r.arena.Restore("feature cache", first, end); err != nil {
			return err
		}
		r.trimmed = false
	}
	if r.spilled == nil {
		return nil
	}
	if err := r.spilled.read(ctx, r.cfg, r.arena.Bytes()[first:end]); err != nil {
		return fmt.Errorf("superbatch: read the rows of slots: %w", err)
	}
	id := r.spilled.id
	r.spilled = nil
	return id.Remove(kindSlots)
}

// spill writes the rows of slots that are not kept to a file and gives their memory back, if
// Config.Spill wants that after this epoch.
func (r *slotRows) spill(id identity, epoch uint64) error {
	first, end := r.unkept()
	if r.cfg.Spill == nil || r.trimmed || first == end || !r.cfg.Spill(epoch) {
		return nil
	}
	s := &spilled{id: id}
	if err := s.write(r.arena.Bytes()[first:end]); err != nil {
		return fmt.Errorf("superbatch: write the rows of slots between epochs: %w", err)
	}
	r.trimmed, r.spilled = true, s
	return r.arena.Discard(first, end)
}

// limit gives back, for good, the memory of all slots but the first ones, in whole pages.
func (r *slotRows) limit(slots int) error {
	if slots >= r.have {
		return nil
	}
	end := r.have
	if r.trimmed {
		end = min(end, r.cfg.SlotsKept)
	}
	r.have = slots
	return r.arena.Discard(4*slots*r.dim, 4*end*r.dim)
}

// count counts the rows that a batch asked for, found in slots and copied to slots.
func (r *slotRows) count(c *changes) {
	r.requests.Add(uint64(len(c.From)))
	r.hits.Add(uint64(c.Hits))
	r.kept.Add(uint64(len(c.Keep)))
}

// stats returns the statistics of the cache.
func (r *slotRows) stats() rowcache.Stats {
	kept, slots := r.kept.Load(), uint64(r.cfg.Slots)
	return rowcache.Stats{Policy: "belady", Capacity: SlotBytes(r.dim) * int64(slots),
		Used:     int64(min(kept, slots)) * int64(r.dim) * 4,
		Requests: r.requests.Load(), Hits: r.hits.Load(), Evicted: kept - min(kept, slots),
		BytesRead: r.cfg.Rows.BytesRead()}
}

// lend counts a batch that the consumer holds, which may have rows in slots.
func (r *slotRows) lend() {
	r.mu.Lock()
	r.mu.lent++
	r.mu.Unlock()
}

// giveBack counts a batch as returned, and frees the slots if they were closed meanwhile.
func (r *slotRows) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.lent--
	_ = r.free() // unmapping what was mapped cannot fail
}

// held reports whether the consumer holds a batch with rows in slots.
func (r *slotRows) held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cfg.InPlace && r.mu.lent > 0
}

// close frees the slots, or leaves that to the return of the last batch with rows there.
func (r *slotRows) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = true
	return r.free()
}

// free frees slots that were closed, unless a lent batch has rows there. The caller holds mu.
func (r *slotRows) free() error {
	if !r.mu.closed || r.mu.lent > 0 || r.arena == nil {
		return nil
	}
	a := r.arena
	r.arena, r.rows = nil, nil
	return a.Free()
}

// spilled locates the rows of slots that are not kept, in a file, while other work uses their
// memory.
type spilled struct {
	id   identity
	refs []ref
}

// spillChunk is the size of a record of spilled rows, in bytes.
const spillChunk = 512 << 10

// spillBytes returns about how many bytes spilled rows take on disk.
func (c *Config) spillBytes(dim int) int64 {
	if c.Spill == nil {
		return 0
	}
	return 4 * int64(c.Slots-c.SlotsKept) * int64(dim)
}

func (s *spilled) write(rows []byte) (err error) {
	w, err := s.id.Create(kindSlots)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	for len(rows) > 0 {
		n := min(spillChunk, len(rows))
		at, err := w.Append(rows[:n])
		if err != nil {
			return err
		}
		s.refs, rows = append(s.refs, at), rows[n:]
	}
	return w.Finish()
}

func (s *spilled) read(ctx context.Context, c *Config, rows []byte) (err error) {
	file, err := s.id.Open(ctx, c.Device, kindSlots)
	if err != nil {
		return err
	}
	buf := readBuffer{Budget: c.Budget}
	defer func() { err = errors.Join(err, buf.Free(), file.Close()) }()
	var records [packedChunk / spillChunk]record
	for refs := s.refs; len(refs) > 0; {
		n := min(len(records), len(refs))
		for i, at := range refs[:n] {
			records[i] = record{File: file, At: at}
		}
		payloads, err := buf.Read(ctx, records[:n]...)
		if err != nil {
			return err
		}
		for _, p := range payloads {
			rows = rows[copy(rows, p):]
		}
		refs = refs[n:]
	}
	return nil
}
