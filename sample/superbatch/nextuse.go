package superbatch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/superbatch/runtimefile"
)

// nextUses tells for every access of a superbatch the next use of its node, or never. They are in
// parts, parallel to those of the accesses, 4 bytes each.
type nextUses struct {
	ranges
	id     runtimefile.Identity
	refs   []runtimefile.Ref
	total  uint64
	bits   int         // of a use: see useBits
	never  uint32      // the use that is none
	held   mem.Account // refs
	memory *mem.Arena  // of records
}

// nextOptions are how much memory keeps next uses from being written, and how many goroutines find
// them, rangesAtOnce at most.
type nextOptions struct {
	memory  int64
	workers int
}

// findNextUses goes backward over the accesses of each range, with the next use of each node of the
// range in memory.
func findNextUses(ctx context.Context, id runtimefile.Identity, dev blockdev.Device, a *accesses,
	opt nextOptions, budget *mem.Budget) (n *nextUses, err error) {
	n = &nextUses{ranges: a.ranges, id: id, total: a.total,
		held: mem.NewAccount(budget, "superbatch index")}
	if n.memory, err = mem.NewArena(budget, "superbatch next uses", opt.memory); err != nil {
		return nil, err
	}
	batches := len(a.starts) - 1
	if n.bits = useBits(batches, a.most); n.bits < 0 {
		err = fmt.Errorf("%d batches of %d nodes at most are too many: lower --superbatch",
			batches, a.most)
	} else {
		err = n.held.Add(8 * int64(len(a.refs)))
	}
	if n.never = uint32(batches+1) << n.bits; err != nil {
		return nil, errors.Join(err, n.free())
	}
	n.refs = make([]runtimefile.Ref, len(a.refs))
	p := &nextPass{nextUses: n, accesses: a}
	if err := errors.Join(p.runAll(ctx, dev, opt.workers, budget), p.close()); err != nil {
		return nil, errors.Join(err, n.free())
	}
	return n, nil
}

// free gives the memory back; the file stays.
func (n *nextUses) free() error {
	n.held.Release()
	return n.memory.Free()
}

// nextPass is what findNextUses does.
type nextPass struct {
	*nextUses
	accesses *accesses
	in       *runtimefile.Reader
	due      atomic.Int64 // the next range

	mu  sync.Mutex // of out
	out *runtimefile.Writer
}

// runAll opens the files, and does all ranges.
func (p *nextPass) runAll(ctx context.Context, dev blockdev.Device, workers int,
	budget *mem.Budget) (err error) {
	if p.in, err = p.id.Open(ctx, dev, runtimefile.KindAccesses); err != nil {
		return err
	}
	p.in.Memory = p.accesses.memory.Bytes()
	if p.out, err = p.id.Create(runtimefile.KindNext); err != nil {
		return err
	}
	p.out.Memory = p.memory.Bytes()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, max(1, min(workers, rangesAtOnce, p.count)))
	var all sync.WaitGroup
	for w := range errs {
		all.Go(func() {
			defer bug.Catch()
			if errs[w] = p.work(ctx, budget); errs[w] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	if err := cause(errs); err != nil {
		return err
	}
	return p.out.Finish()
}

// work takes the memory for one range at a time, and does ranges until none is left.
func (p *nextPass) work(ctx context.Context, budget *mem.Budget) (err error) {
	arena, err := mem.NewArena(budget, "superbatch next uses",
		bytesPerNode<<p.shift+4*int64(p.window))
	if err != nil {
		return err
	}
	b := arena.Bytes()
	w := &nextWorker{nextPass: p, last: carve[uint32](&b, 1<<p.shift),
		next: carve[uint32](&b, p.window)}
	ahead := runtimefile.NewAhead(ctx, budget, w.choose)
	defer func() { err = errors.Join(err, ahead.Close(), arena.Free()) }()
	for {
		g, err := ahead.Next(ctx)
		if g == nil || err != nil {
			return err
		}
		if g.Fresh {
			w.begin()
		}
		for i, part := range g.Parts {
			if err := w.one(g.Payloads[i], part); err != nil {
				return err
			}
		}
	}
}

// nextWorker is the memory of one goroutine of findNextUses.
type nextWorker struct {
	*nextPass
	last []uint32 // of each node: the use found last, or never
	next []uint32 // of a part's accesses
	turn int      // of the access found last

	r, window int // of the range that is read: the windows before are left
}

// choose takes some parts of the range at hand, the last first, or of the next one: as much as a
// window may have in one part.
func (w *nextWorker) choose(g *runtimefile.Group) bool {
	most := int64(w.ranges.window * w.wordBytes())
	for bytes := int64(0); len(g.Records) == 0; g.Fresh = true {
		for ; w.window > 0; w.window-- {
			part := (w.window-1)*w.count + w.r
			at := w.accesses.refs[part]
			if at.Bytes == 0 {
				continue
			}
			if bytes += int64(at.Bytes); bytes > most && len(g.Records) > 0 {
				return true
			}
			g.Add(w.in, at, part)
		}
		if len(g.Records) > 0 {
			return true
		}
		if w.r = int(w.due.Add(1)) - 1; w.r >= w.count {
			return false
		}
		w.window = w.accesses.windows()
	}
	return true
}

// one does one part, whose accesses are the payload.
func (w *nextWorker) one(payload []byte, part int) error {
	next, err := w.find(payload, part)
	if err != nil {
		return w.in.Damage(w.accesses.refs[part].Off(), "%v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refs[part], err = w.out.Append(mem.BytesOf(next))
	return err
}

// find gives the next uses of a part's accesses.
func (w *nextWorker) find(payload []byte, part int) ([]uint32, error) {
	width := w.wordBytes()
	n := (len(payload) - 8) / width
	if n < 1 || n > w.ranges.window || len(payload) != n*width+8 {
		return nil, fmt.Errorf("%d bytes of accesses of %d", len(payload), width)
	}
	next, first := w.next[:n], uint32(part/w.count)*uint32(w.ranges.window)
	if !w.backward(payload, width, first, next) {
		return nil, errors.New("an access is not before what is said to be the next")
	}
	return next, nil
}

// backward finds the next uses of a part's accesses, whose numbers begin with first. In the loop
// over those of a turn nothing needs to be guessed: the reads of last are spread over a range's
// nodes, and go on while one waits for memory. It is false if an access does not come before what
// is said to be the next.
func (w *nextWorker) backward(words []byte, width int, first uint32, next []uint32) bool {
	last, number, wrong, starts := w.last, w.numberBits(), uint64(0), w.accesses.starts
	mask, numbers, ats := uint64(len(last)-1), uint32(1)<<number-1, uint32(1)<<w.bits-1
	for i := len(next) - 1; i >= 0; {
		from := first + binary.LittleEndian.Uint32(words[i*width:])&numbers
		for starts[w.turn] > from {
			w.turn--
		}
		from = starts[w.turn]
		for turn := uint32(w.turn) << w.bits; i >= 0; i-- {
			word := binary.LittleEndian.Uint64(words[i*width : i*width+8])
			access := first + uint32(word)&numbers
			if access < from {
				break
			}
			node, use := word>>number&mask, turn|(access-from)&ats
			later := last[node]
			last[node], next[i] = use, later
			wrong |= uint64(later) - uint64(use) - 1 // has the top bit if it is not later
		}
	}
	return wrong>>63 == 0
}

// begin makes ready for a range.
func (w *nextWorker) begin() {
	w.turn = len(w.accesses.starts) - 1
	for i := range w.last {
		w.last[i] = w.never
	}
}

func (p *nextPass) close() (err error) {
	if p.in != nil {
		err = p.in.Close()
	}
	if p.out != nil {
		err = errors.Join(err, p.out.Abort())
	}
	return err
}

// nextReader gives the next uses in the order of accesses: it merges the parts of each window, each
// node's range telling which is next.
type nextReader struct {
	*nextUses
	in     *runtimefile.Reader
	ahead  *runtimefile.Ahead
	window int        // the one to choose the parts of
	parts  [][]uint32 // of the window at hand
	begins []uint32   // of each part: what is left of it begins here
	taken  uint64     // accesses
	left   int        // of the window
}

// read opens the next uses for one pass.
func (n *nextUses) read(ctx context.Context, dev blockdev.Device,
	budget *mem.Budget) (*nextReader, error) {
	in, err := n.id.Open(ctx, dev, runtimefile.KindNext)
	if err != nil {
		return nil, err
	}
	in.Memory = n.memory.Bytes()
	r := &nextReader{nextUses: n, in: in, parts: make([][]uint32, n.count),
		begins: make([]uint32, n.count)}
	r.ahead = runtimefile.NewAhead(ctx, budget, r.choose)
	return r, nil
}

// choose takes the parts of the next window.
func (r *nextReader) choose(g *runtimefile.Group) bool {
	first := r.window * r.count
	if first == len(r.refs) {
		return false
	}
	for i, at := range r.refs[first : first+r.count] {
		if at.Bytes > 0 {
			g.Add(r.in, at, i)
		}
	}
	r.window++
	return true
}

// of writes the next uses of a turn's nodes, or of some of them, which follow those before.
func (r *nextReader) of(ctx context.Context, turn uint32, nodes []sample.NodeID,
	next []uint32) error {
	low, high := r.never, uint32(0)
	for done := 0; done < len(nodes); {
		if r.left == 0 {
			if err := r.load(ctx); err != nil {
				return err
			}
		}
		n := min(r.left, len(nodes)-done)
		from, to := nodes[done:done+n], next[done:done+n]
		for i, v := range from {
			part := int(uint64(v) >> r.shift)
			uses, begin := r.parts[part], int(r.begins[part])
			if begin >= len(uses) {
				return r.in.Damage(0, "range %d has fewer accesses than its batches", part)
			}
			use := uses[begin]
			r.begins[part]++
			low, high = min(low, use), max(high, use)
			to[i] = use
		}
		done, r.left, r.taken = done+n, r.left-n, r.taken+uint64(n)
	}
	if low < (turn+1)<<r.bits || high > r.never {
		return r.in.Damage(0, "accesses of turn %d are said to be followed by those of %d to %d",
			turn, low>>r.bits, high>>r.bits)
	}
	return nil
}

// load goes on to the next window.
func (r *nextReader) load(ctx context.Context) error {
	g, err := r.ahead.Next(ctx)
	if err != nil {
		return err
	}
	if g == nil {
		return r.in.Damage(0, "%d accesses are fewer than those of the batches", r.taken)
	}
	clear(r.parts)
	clear(r.begins)
	for i, part := range g.Parts {
		r.parts[part] = mem.View[uint32](g.Payloads[i])
	}
	r.left = int(min(uint64(r.ranges.window), r.total-r.taken))
	return nil
}

func (r *nextReader) close() error {
	return errors.Join(r.ahead.Close(), r.in.Close())
}
