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
	"gdb/internal/pace"
	"gdb/sample"
)

// nextUses holds, for every access of a superbatch, the next use of its node, or never. The uses
// are in parts parallel to the parts of the accesses, 4 bytes each.
type nextUses struct {
	ranges
	id     identity
	refs   []ref
	total  uint64
	Bits   int         // bits of a use that hold the position: see useBits
	never  uint32      // the use that stands for no next use
	held   mem.Account // refs
	memory *mem.Arena  // memory that the first records go to
}

// nextOptions say how many bytes of next uses stay in memory instead of a file, and how many
// goroutines find them, at most rangesAtOnce.
type nextOptions struct {
	Memory  int64
	Workers int
}

// findNextUses finds the next use of each access. It goes backward over the accesses of each range,
// with the next use of each node of the range in memory. The caller calls Free.
func findNextUses(ctx context.Context, id identity, dev blockdev.Device, a *accesses,
	opt nextOptions, budget *mem.Budget) (n *nextUses, err error) {
	n = &nextUses{ranges: a.ranges, id: id, total: a.Total,
		held: mem.NewAccount(budget, "superbatch index")}
	if n.memory, err = mem.NewArena(budget, "superbatch next uses", opt.Memory); err != nil {
		return nil, err
	}
	batches := len(a.Starts) - 1
	if n.Bits = useBits(batches, a.most); n.Bits < 0 {
		err = fmt.Errorf("%d batches of %d nodes at most are too many: lower --superbatch",
			batches, a.most)
	} else {
		err = n.held.Add(8 * int64(len(a.refs)))
	}
	if n.never = uint32(batches+1) << n.Bits; err != nil {
		return nil, errors.Join(err, n.Free())
	}
	n.refs = make([]ref, len(a.refs))
	p := &nextPass{nextUses: n, accesses: a}
	if err := errors.Join(p.runAll(ctx, dev, opt.Workers, budget), p.close()); err != nil {
		return nil, errors.Join(err, n.Free())
	}
	return n, nil
}

// Free gives the memory back. The file is not removed.
func (n *nextUses) Free() error {
	n.held.Release()
	return n.memory.Free()
}

// nextPass is the state of findNextUses that its goroutines share.
type nextPass struct {
	*nextUses
	accesses *accesses
	in       *fileReader
	due      atomic.Int64 // the next range that no goroutine has taken

	mu  sync.Mutex // protects out
	out *fileWriter
}

// runAll opens the files and starts goroutines that find the next uses of all ranges.
func (p *nextPass) runAll(ctx context.Context, dev blockdev.Device, workers int,
	budget *mem.Budget) (err error) {
	if p.in, err = p.id.Open(ctx, dev, kindAccesses); err != nil {
		return err
	}
	p.in.Memory = p.accesses.memory.Bytes()
	if p.out, err = p.id.Create(kindNext); err != nil {
		return err
	}
	p.out.Memory = p.memory.Bytes()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, max(1, min(workers, rangesAtOnce, p.Count)))
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
	if err := pace.Cause(errs); err != nil {
		return err
	}
	return p.out.Finish()
}

// work takes memory for one range, and finds next uses of range after range until none is left.
func (p *nextPass) work(ctx context.Context, budget *mem.Budget) (err error) {
	arena, err := mem.NewArena(budget, "superbatch next uses",
		bytesPerNode<<p.Shift+4*int64(p.Window))
	if err != nil {
		return err
	}
	b := arena.Bytes()
	w := &nextWorker{nextPass: p, Last: carve[uint32](&b, 1<<p.Shift),
		Next: carve[uint32](&b, p.Window)}
	ahead := newReadAhead(ctx, budget, w.choose)
	defer func() { err = errors.Join(err, ahead.Close(), arena.Free()) }()
	for {
		g, err := ahead.Next(ctx)
		if g == nil || err != nil {
			return err
		}
		if g.Fresh {
			w.Begin()
		}
		for i, part := range g.Parts {
			if err := w.one(g.Payloads[i], part); err != nil {
				return err
			}
		}
	}
}

// nextWorker is the state of one goroutine of findNextUses.
type nextWorker struct {
	*nextPass
	Last []uint32 // the use found last of each node of the range, or never
	Next []uint32 // next uses of a part's accesses
	turn int      // turn of the access found last

	r, window int // range that is read, and how many of its windows are left
}

// choose adds parts of the current range to g, the last first, or of the next range if none is
// left. It adds as many bytes as a window can have in one part, or one part.
func (w *nextWorker) choose(g *readGroup) bool {
	most := int64(w.ranges.Window * w.wordBytes())
	for bytes := int64(0); len(g.Records) == 0; g.Fresh = true {
		for ; w.window > 0; w.window-- {
			part := (w.window-1)*w.Count + w.r
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
		if w.r = int(w.due.Add(1)) - 1; w.r >= w.Count {
			return false
		}
		w.window = w.accesses.windows()
	}
	return true
}

// one finds and writes the next uses of one part, whose accesses are the payload.
func (w *nextWorker) one(payload []byte, part int) error {
	next, err := w.Find(payload, part)
	if err != nil {
		return w.in.Damage(w.accesses.refs[part].Off(), "%v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refs[part], err = w.out.Append(mem.BytesOf(next))
	return err
}

// Find returns the next uses of a part's accesses, valid until the next call.
func (w *nextWorker) Find(payload []byte, part int) ([]uint32, error) {
	width := w.wordBytes()
	n := (len(payload) - 8) / width
	if n < 1 || n > w.ranges.Window || len(payload) != n*width+8 {
		return nil, fmt.Errorf("%d bytes of accesses of %d", len(payload), width)
	}
	next, first := w.Next[:n], uint32(part/w.Count)*uint32(w.ranges.Window)
	if !w.backward(payload, width, first, next) {
		return nil, errors.New("an access is not before what is said to be the next")
	}
	return next, nil
}

// backward finds the next uses of a part's accesses, whose numbers begin with first. It returns
// false if an access is not before its next use, so the part is damaged. The inner loop, over the
// accesses of one turn, has no branch that depends on data: reads of last are spread over a range's
// nodes, and later ones go on while one waits for memory.
func (w *nextWorker) backward(words []byte, width int, first uint32, next []uint32) bool {
	last, number, wrong, starts := w.Last, w.numberBits(), uint64(0), w.accesses.Starts
	mask, numbers, ats := uint64(len(last)-1), uint32(1)<<number-1, uint32(1)<<w.Bits-1
	for i := len(next) - 1; i >= 0; {
		from := first + binary.LittleEndian.Uint32(words[i*width:])&numbers
		for starts[w.turn] > from {
			w.turn--
		}
		from = starts[w.turn]
		for turn := uint32(w.turn) << w.Bits; i >= 0; i-- {
			word := binary.LittleEndian.Uint64(words[i*width : i*width+8])
			access := first + uint32(word)&numbers
			if access < from {
				break
			}
			node, use := word>>number&mask, turn|(access-from)&ats
			later := last[node]
			last[node], next[i] = use, later
			wrong |= uint64(later) - uint64(use) - 1 // the top bit is set if later is not after use
		}
	}
	return wrong>>63 == 0
}

// Begin prepares for the next range: no node has a next use.
func (w *nextWorker) Begin() {
	w.turn = len(w.accesses.Starts) - 1
	for i := range w.Last {
		w.Last[i] = w.never
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

// nextReader returns next uses in the order of the accesses. It merges the parts of each window:
// the range of the next node says from which part the next use comes.
type nextReader struct {
	*nextUses
	In     *fileReader
	ahead  *readAhead
	window int        // the window whose parts choose adds next
	parts  [][]uint32 // parts of the current window
	begins []uint32   // for each part, how much of it was returned
	taken  uint64     // accesses whose next use was returned
	left   int        // accesses left of the current window
}

// Read opens the next uses for one pass over all accesses.
func (n *nextUses) Read(ctx context.Context, dev blockdev.Device,
	budget *mem.Budget) (*nextReader, error) {
	in, err := n.id.Open(ctx, dev, kindNext)
	if err != nil {
		return nil, err
	}
	in.Memory = n.memory.Bytes()
	r := &nextReader{nextUses: n, In: in, parts: make([][]uint32, n.Count),
		begins: make([]uint32, n.Count)}
	r.ahead = newReadAhead(ctx, budget, r.choose)
	return r, nil
}

// choose adds the parts of the next window to g.
func (r *nextReader) choose(g *readGroup) bool {
	first := r.window * r.Count
	if first == len(r.refs) {
		return false
	}
	for i, at := range r.refs[first : first+r.Count] {
		if at.Bytes > 0 {
			g.Add(r.In, at, i)
		}
	}
	r.window++
	return true
}

// Of writes the next uses of nodes to next. All of nodes occur in the turn, and they must follow
// the nodes of the call before.
func (r *nextReader) Of(ctx context.Context, turn uint32, nodes []sample.NodeID,
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
			part := int(uint64(v) >> r.Shift)
			uses, begin := r.parts[part], int(r.begins[part])
			if begin >= len(uses) {
				return r.In.Damage(0, "range %d has fewer accesses than its batches", part)
			}
			use := uses[begin]
			r.begins[part]++
			low, high = min(low, use), max(high, use)
			to[i] = use
		}
		done, r.left, r.taken = done+n, r.left-n, r.taken+uint64(n)
	}
	if low < (turn+1)<<r.Bits || high > r.never {
		return r.In.Damage(0, "accesses of turn %d are said to be followed by those of %d to %d",
			turn, low>>r.Bits, high>>r.Bits)
	}
	return nil
}

// load moves to the next window.
func (r *nextReader) load(ctx context.Context) error {
	g, err := r.ahead.Next(ctx)
	if err != nil {
		return err
	}
	if g == nil {
		return r.In.Damage(0, "%d accesses are fewer than those of the batches", r.taken)
	}
	clear(r.parts)
	clear(r.begins)
	for i, part := range g.Parts {
		r.parts[part] = mem.View[uint32](g.Payloads[i])
	}
	r.left = int(min(uint64(r.ranges.Window), r.total-r.taken))
	return nil
}

// Close ends reading and closes the file.
func (r *nextReader) Close() error {
	return errors.Join(r.ahead.Close(), r.In.Close())
}
