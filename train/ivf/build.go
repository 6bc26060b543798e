package ivf

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/kernel"
	"gdb/compute/kernel/pq"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout/ingest/extsort"
)

const (
	// queries is how many vectors are searched for to choose how much a search looks at. Centers
	// are not learned from them.
	queries = 256
	// bookSample is how many rows the centers of codes are learned from.
	bookSample = 1 << 14
	// sortMost and sortLeast bound the memory in which codes are sorted.
	sortMost, sortLeast = 256 << 20, 1 << 20
)

// builder makes an index.
type builder struct {
	Options
	rows   Rows
	fs     extsort.Options // where codes are sorted
	pool   *kernel.Pool
	shape  shape
	tree   *tree
	book   *pq.Book
	counts []uint32 // vectors of each list
	truth  *truth
	memory mem.Account
}

// Build makes the index of some vectors. It reads them twice. An index that was there stays as it
// is for those who read it.
func Build(ctx context.Context, rows Rows, opt Options) (made Made, err error) {
	if err := CheckCloseness(opt.By); err != nil {
		return made, err
	}
	if rows.Count < 1 || rows.Dim < 1 || rows.Dim > dimMost {
		return made, fmt.Errorf("%d vectors of %d columns have no index", rows.Count, rows.Dim)
	}
	fs, tmp := opt.Store.FS(), opt.Store.Path("tmp", "index")
	if err := fs.MkdirAll(tmp, 0o755); err != nil {
		return made, fmt.Errorf("make %s: %w", tmp, err)
	}
	lock, err := files.Lock(fs, fs.PathJoin(tmp, "lock"))
	if errors.Is(err, files.ErrLockHeld) {
		return made, fmt.Errorf("another index of %s is being made: wait for it", opt.Store.Path())
	}
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, fs.RemoveAll(tmp), lock.Close()) }()
	b := &builder{Options: opt, rows: rows, pool: kernel.NewPool(opt.Threads),
		fs:     extsort.Options{FS: fs, Dir: tmp, Prefix: "codes", Budget: opt.Budget},
		memory: mem.NewAccount(opt.Budget, "making an index of vectors")}
	defer b.memory.Release()
	return b.build(ctx)
}

// build learns, sorts, writes and measures.
func (b *builder) build(ctx context.Context) (made Made, err error) {
	if err := b.learn(ctx); err != nil {
		return made, err
	}
	b.fs.Memory = sortMost
	if limit := b.Budget.Limit(); limit > 0 {
		b.fs.Memory = max(min(b.fs.Memory, (limit-b.Budget.Used())/3), sortLeast)
	}
	runs, err := extsort.SortEntries(b.fs, func(s *extsort.Strings) error {
		return b.pass(ctx, s)
	})
	if err != nil {
		return made, err
	}
	fs, path := b.Store.FS(), b.Store.Path(b.Path)
	if err := fs.MkdirAll(fs.PathDir(path), 0o755); err != nil {
		return made, fmt.Errorf("make %s: %w", fs.PathDir(path), err)
	}
	part := files.PartPath(path)
	made.Bytes, err = b.write(ctx, part, runs)
	if err == nil {
		b.memory.Release()
		made.Tuning, err = b.tune(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = fs.Remove(part) // it may not have been created
		return made, err
	}
	if err := fs.Rename(part, path); err != nil {
		return made, fmt.Errorf("rename %s: %w", part, files.Cause(err))
	}
	made.Vectors, made.Lists = b.shape.Vectors, b.shape.Lists
	return made, files.SyncDir(fs, fs.PathDir(path))
}

// step tells how far the work is.
func (b *builder) step(stage string, done, of int) {
	if b.Progress != nil {
		b.Progress(stage, float64(done)/float64(max(1, of)))
	}
}

// learn reads a sample of the vectors and the queries, and learns the centers of lists and of
// codes.
func (b *builder) learn(ctx context.Context) (err error) {
	n, dim := b.rows.Count, b.rows.Dim
	lists := listsFor(n)
	asked := min(queries, max(1, n/4))
	size := min(n-asked, lists*sampleOfList)
	if n == 1 {
		size = 1
	}
	// Sums of rows are float64, and there are as many as centers.
	heap := 4*int64(dim)*int64(asked+bookSample) + 4*treeBytes(0, lists, dim) +
		4*meansRows*int64(dim) + 8*int64(size)
	if err := b.memory.Add(heap); err != nil {
		return err
	}
	arena, err := mem.NewArena(b.Budget, "a sample of vectors", 4*int64(dim)*int64(size))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, arena.Free()) }()
	sample := mem.View[float32](arena.Bytes())
	asks, err := b.sample(ctx, sample, asked)
	if err != nil {
		return err
	}
	b.step("learning centers", 0, 1)
	b.tree = learnTree(b.pool, sample, dim, lists, rng.Key(b.Seed, 2))
	b.counts = make([]uint32, b.tree.count())
	b.truth = newTruth(asks, dim, b.By)
	b.book = b.learnBook(sample)
	b.shape = shape{Shape: b.book.Shape, Groups: len(b.tree.groups) / dim, Lists: b.tree.count(),
		Vectors: uint64(n), Sums: b.Sums, By: b.By, Of: b.Of, Snapshot: b.Store.Meta().Snapshot}
	return ctx.Err()
}

// sample fills sample with some vectors in random order, and returns others to search for, with
// their nodes.
func (b *builder) sample(ctx context.Context, sample []float32, asked int) (asks queriesOf,
	err error) {
	dim := b.rows.Dim
	size := len(sample) / dim
	order := rng.NewPermutation(uint64(b.rows.Count), rng.Key(b.Seed, 1))
	seen := 0
	err = b.rows.Each(ctx, func(nodes []uint32, rows []float32) error {
		for i, node := range nodes {
			row := rows[i*dim:][:dim]
			switch place := order.At(uint64(seen + i)); {
			case place < uint64(size):
				copy(sample[int(place)*dim:], row)
			case place < uint64(size+asked):
				asks.nodes = append(asks.nodes, node)
				asks.rows = append(asks.rows, row...)
			}
		}
		b.step("reading a sample", seen, b.rows.Count)
		seen += len(nodes)
		return ctx.Err()
	})
	prepare(sample, dim, b.By)
	prepare(asks.rows, dim, b.By)
	return asks, err
}

// learnBook learns the centers of codes from what remains of sampled rows without the centers of
// their lists.
func (b *builder) learnBook(sample []float32) *pq.Book {
	dim := b.rows.Dim
	all := len(sample) / dim
	n := min(all, bookSample)
	rest := make([]float32, 0, n*dim)
	for i := range n { // they are ordered by group by now
		rest = append(rest, sample[i*all/n*dim:][:dim]...)
	}
	a := newAssigner(b.tree)
	for lo := 0; lo < n; lo += chunkRows {
		m := min(chunkRows, n-lo)
		for i, list := range a.assign(rest[lo*dim:][:m*dim], m) {
			row := rest[(lo+i)*dim:][:dim]
			for j, c := range b.tree.center(list) {
				row[j] -= c
			}
		}
	}
	return pq.Train(pq.ShapeOf(dim), rest, n, rng.Key(b.Seed, 3))
}
