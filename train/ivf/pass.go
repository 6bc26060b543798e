package ivf

import (
	"context"
	"encoding/binary"
	"math"
	"sync"

	"gdb/compute/kernel"
	"gdb/internal/bug"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout/ingest/extsort"
)

// chunk is the vectors of some nodes on their way to codes.
type chunk struct {
	nodes []uint32
	rows  []float32
	lists []uint32
	texts []byte // what is kept of each vector
	done  chan struct{}
}

// textBytes returns what a vector takes between coding and writing: its code, bias and sum.
func (s *shape) textBytes() int {
	if s.Sums {
		return s.CodeBytes() + 8
	}
	return s.CodeBytes() + 4
}

// chunkBytes is the memory of a chunk.
func (s *shape) chunkBytes() int64 { return chunkRows * int64(4*s.Dim+8+s.textBytes()) }

// coder turns vectors into codes. It may be used by one goroutine.
type coder struct {
	b             *builder
	assigner      *assigner
	rest, decoded []float32
	truth         *truthPart
}

func (b *builder) newCoder() *coder {
	return &coder{b: b, assigner: newAssigner(b.tree), rest: make([]float32, b.rows.Dim),
		decoded: make([]float32, b.rows.Dim), truth: b.truth.part()}
}

// coderBytes is the memory of a coder.
func (b *builder) coderBytes() int64 {
	return assignerBytes(b.tree) + b.truth.partBytes()
}

// code fills in what is kept of the vectors of a chunk.
func (c *coder) code(k *chunk) {
	dim, size := c.b.rows.Dim, c.b.shape.textBytes()
	if c.b.Sums {
		for i := range k.nodes {
			sum := codec.Checksum(mem.BytesOf(k.rows[i*dim:][:dim]))
			binary.LittleEndian.PutUint32(k.texts[(i+1)*size-4:], sum)
		}
	}
	rows := k.rows[:len(k.nodes)*dim]
	prepare(rows, dim, c.b.By)
	copy(k.lists, c.assigner.assign(rows, len(k.nodes)))
	for i := range k.nodes {
		bias := c.one(k.texts[i*size:], rows[i*dim:][:dim], k.lists[i])
		at := i*size + c.b.shape.CodeBytes()
		binary.LittleEndian.PutUint32(k.texts[at:], math.Float32bits(bias))
	}
	c.truth.look(k.nodes, rows)
}

// one writes the code of a vector x, and returns its bias. Closeness is q·x, or q·x - x²/2, which
// orders as the distance does. With the list's center c, what the code stands for, r, and the rest
// e, it is q·c - c²/2 + q·r + bias, where (q-x+e)·e is taken to be 0, its mean: e is as likely on
// one side of what the code stands for as on the other.
func (c *coder) one(code []byte, x []float32, list uint32) (bias float32) {
	center := c.b.tree.center(list)
	for j, v := range x {
		c.rest[j] = v - center[j]
	}
	c.b.book.Encode(code, c.decoded, c.rest)
	if c.b.By == Dot {
		return 0
	}
	var sum float32
	for j, r := range c.decoded {
		e := c.rest[j] - r
		sum -= e*e/2 + r*(center[j]+r/2)
	}
	return sum
}

// pass reads all vectors once, and adds their codes to a sorter, by list and node. Workers code;
// the caller's goroutine adds, in the order of the nodes.
func (b *builder) pass(ctx context.Context, s *extsort.Strings) error {
	workers := max(1, b.Threads)
	chunks := workers + 2
	if err := b.memory.Add(int64(workers)*b.coderBytes() +
		int64(chunks)*b.shape.chunkBytes()); err != nil {
		return err
	}
	work, ordered, free := make(chan *chunk), make(chan *chunk, chunks), make(chan *chunk, chunks)
	for range chunks {
		free <- &chunk{nodes: make([]uint32, 0, chunkRows),
			rows:  make([]float32, chunkRows*b.rows.Dim),
			lists: make([]uint32, chunkRows),
			texts: make([]byte, chunkRows*b.shape.textBytes())}
	}
	var all sync.WaitGroup
	for range workers {
		c := b.newCoder()
		all.Add(1)
		go func() {
			defer bug.Catch()
			defer all.Done()
			for k := range work {
				c.code(k)
				close(k.done)
			}
			b.truth.merge(c.truth)
		}()
	}
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		defer bug.Catch()
		defer close(ordered)
		defer close(work)
		coded := 0
		stopped := b.rows.Each(ctx, func(nodes []uint32, rows []float32) error {
			coded += len(nodes)
			b.step("coding", coded, b.rows.Count)
			return b.cut(ctx, nodes, rows, chunkOut{work, ordered, free})
		})
		if stopped != nil {
			stop(stopped)
		}
	}()
	for k := range ordered {
		<-k.done
		if context.Cause(ctx) == nil {
			if err := b.add(s, k); err != nil {
				stop(err)
			}
		}
		free <- k
	}
	all.Wait()
	err := context.Cause(ctx)
	stop(nil)
	return err
}

// chunkOut is where chunks come from, and go to.
type chunkOut struct{ work, ordered, free chan *chunk }

// cut hands out rows in chunks.
func (b *builder) cut(ctx context.Context, nodes []uint32, rows []float32, out chunkOut) error {
	dim := b.rows.Dim
	for len(nodes) > 0 {
		var k *chunk
		select {
		case k = <-out.free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		n := min(chunkRows, len(nodes))
		copy(k.rows, rows[:n*dim])
		clear(k.texts)
		k.nodes, k.done = append(k.nodes[:0], nodes[:n]...), make(chan struct{})
		out.ordered <- k // there is room for all
		out.work <- k
		nodes, rows = nodes[n:], rows[n*dim:]
	}
	return context.Cause(ctx)
}

// add adds the codes of a chunk to the sorter.
func (b *builder) add(s *extsort.Strings, k *chunk) error {
	size := b.shape.textBytes()
	for i, node := range k.nodes {
		list := k.lists[i]
		b.counts[list]++
		err := s.Add(extsort.Entry{Key: uint64(list)<<32 | uint64(node),
			Text: k.texts[i*size:][:size]})
		if err != nil {
			return err
		}
	}
	return nil
}

// queriesOf are vectors that are searched for.
type queriesOf struct {
	nodes []uint32
	rows  []float32
}

// truth has the vectors that are closest to the queries, exactly.
type truth struct {
	queriesOf
	dim int
	by  string
	mu  struct {
		sync.Mutex
		best []closest
	}
}

func newTruth(asks queriesOf, dim int, by string) *truth {
	t := &truth{queriesOf: asks, dim: dim, by: by}
	t.mu.best = newBest(len(asks.nodes))
	return t
}

func newBest(n int) []closest {
	best := make([]closest, n)
	for i := range best {
		best[i].reset(Answers)
	}
	return best
}

// truthPart is what one worker has seen.
type truthPart struct {
	of     *truth
	best   []closest
	scores []float32
	pool   *kernel.Pool
}

// truthRows is how many rows are compared with all queries together.
const truthRows = 256

func (t *truth) part() *truthPart {
	return &truthPart{of: t, best: newBest(len(t.nodes)), pool: kernel.NewPool(1),
		scores: make([]float32, truthRows*len(t.nodes))}
}

// partBytes is the memory of a part.
func (t *truth) partBytes() int64 {
	n := int64(len(t.nodes))
	return n * (4*truthRows + 4*int64(t.dim+32) + 12*(spare+2)*Answers)
}

// look compares some rows with all queries.
func (p *truthPart) look(nodes []uint32, rows []float32) {
	t := p.of
	for lo := 0; lo < len(nodes); lo += truthRows {
		m := min(truthRows, len(nodes)-lo)
		some := rows[lo*t.dim:][:m*t.dim]
		kernel.GEMMTB(p.pool, p.scores, some, t.rows,
			kernel.Shape{M: m, N: t.dim, K: len(t.nodes)})
		for i := range m {
			half := float32(0)
			if t.by == Euclid {
				half = kernel.SquareSum(some[i*t.dim:][:t.dim]) / 2
			}
			node := nodes[lo+i]
			for q, v := range p.scores[i*len(t.nodes):][:len(t.nodes)] {
				if v -= half; v > p.best[q].least && node != t.nodes[q] {
					p.best[q].add(scored{score: v, id: node})
				}
			}
		}
	}
}

// merge adds what a worker has seen. The closest are the same in any order.
func (t *truth) merge(p *truthPart) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for q := range t.mu.best {
		t.mu.best[q].items = append(t.mu.best[q].items, p.best[q].items...)
		t.mu.best[q].sort()
	}
}

// of returns the nodes that are closest to a query.
func (t *truth) of(q int) []scored { return t.mu.best[q].items }
