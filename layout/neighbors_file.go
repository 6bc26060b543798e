package layout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"

	"github.com/cockroachdb/errors/oserror"
)

// Kinds of the files of neighbor caches.
const (
	KindNeighborsIn  = "GNIN"
	KindNeighborsOut = "GNOU"
)

// neighborsLayout is the version of the file and of the choice: another one is made anew.
const neighborsLayout = 1

// A neighbor cache is kept in prep/neighbors-in.lists, or -out: a header (codec.Header) with
//
//	0        4            8       16      24      32      40        48      52
//	+--------+------------+-------+-------+-------+-------+---------+-------+---------+
//	| layout | compressed | size  | nodes | edges | lists | entries | bytes | crc32c  |
//	+--------+------------+-------+-------+-------+-------+---------+-------+---------+
//
// and then the arena as it is in memory (see neighborCache), whose checksum this is. The file can
// be made again, so nothing of the store depends on it: one that was made for another size, or is
// damaged, is replaced.

func neighborsPath(d Direction) string { return "prep/neighbors-" + d.String() + ".lists" }

func neighborsKind(d Direction) string {
	if d == Out {
		return KindNeighborsOut
	}
	return KindNeighborsIn
}

// errStale is the cause of a file that is whole, but not for this graph or these options.
var errStale = errors.New("made for another graph, size or version")

// fields are those of the header but for counts and checksum: what must be as it is now.
func (s *Store) neighborFields(opt neighborOptions) []byte {
	var e codec.Enc
	e.U32(neighborsLayout)
	compressed := uint32(0)
	if opt.compress {
		compressed = 1
	}
	e.U32(compressed)
	e.U64(uint64(opt.cacheBytes))
	e.U64(s.meta.Nodes)
	e.U64(s.meta.Edges)
	return e.B
}

// saveNeighbors writes a cache for later runs.
func (s *Store) saveNeighbors(dir Direction, opt neighborOptions, c *neighborCache) error {
	prep, path := s.Path("prep"), s.Path(neighborsPath(dir))
	if err := s.fs.MkdirAll(prep, 0o755); err != nil {
		return fmt.Errorf("layout: make %s: %w", prep, err)
	}
	// A process that saves at the same time has a file of its own, or fails in the end.
	part := path + ".new"
	if err := s.fs.Remove(part); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("layout: remove %s: %w", part, err)
	}
	parts := [][]byte{mem.BytesOf(c.bases)[:c.basesBytes()], mem.BytesOf(c.ids),
		mem.BytesOf(c.starts)[:c.startsBytes()], c.lists}
	rest := c.size()
	for _, p := range parts {
		rest -= int64(len(p))
	}
	parts = append(parts, make([]byte, rest))
	h := codec.Header{Kind: neighborsKind(dir), UUID: s.meta.UUID}
	e := codec.Enc{B: s.neighborFields(opt)}
	e.U64(c.count)
	e.U64(c.entries)
	e.U64(c.bytes)
	e.U32(codec.BlockSum(h.Kind, h.UUID, 1, parts...))
	h.Fields = e.B
	f, err := createFile(s.fs, part)
	if err != nil {
		return err
	}
	for _, p := range slices.Insert(parts, 0, h.Encode()) {
		if err := f.write(p); err != nil {
			return errors.Join(err, f.abort(), s.fs.Remove(part))
		}
	}
	if _, err := f.finish(neighborsPath(dir), h.Kind); err != nil {
		return errors.Join(err, s.fs.Remove(part))
	}
	if err := s.fs.Rename(part, path); err != nil {
		return fmt.Errorf("layout: rename %s: %w", part, err)
	}
	return nil
}

// loadNeighbors reads the cache that an earlier run saved. The error wraps errStale if it is whole,
// but not what is asked for.
func (s *Store) loadNeighbors(ctx context.Context, dev blockdev.Device, dir Direction,
	opt neighborOptions) (c *neighborCache, err error) {
	f, err := s.open(dev, neighborsPath(dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.file.Close()) }()
	c = &neighborCache{}
	sum, err := c.readHeader(ctx, s, f, dir, opt)
	if err == nil {
		err = f.sized(codec.HeaderBytes + c.size())
	}
	if err != nil {
		return nil, err
	}
	if c.arenas[0], err = mem.NewArena(opt.budget, "neighbor cache", c.size()); err != nil {
		return nil, err
	}
	if err = f.read(ctx, codec.HeaderBytes, c.arenas[0].Bytes()); err != nil {
		err = fmt.Errorf("layout: read %s: %w", f.path, err)
	} else if got := codec.BlockSum(neighborsKind(dir), s.meta.UUID, 1,
		c.arenas[0].Bytes()); got != sum {
		err = f.damage(1, codec.HeaderBytes, "checksum is %08x, its bytes give %08x", sum, got)
	}
	if err == nil {
		c.view()
		if what := c.ordered(s.meta.Nodes); what != "" {
			err = f.damage(1, codec.HeaderBytes, "%s", what)
		}
	}
	if err == nil {
		err = c.index(s.meta.Nodes, opt.budget)
	}
	if err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

// readHeader reads the counts and returns the checksum of what follows.
func (c *neighborCache) readHeader(ctx context.Context, s *Store, f *source, dir Direction,
	opt neighborOptions) (sum uint32, err error) {
	buf, err := mem.NewArena(nil, "header", pageBytes)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	h, err := f.header(ctx, neighborsKind(dir), s.meta.UUID, buf.Bytes())
	if err != nil {
		return 0, err
	}
	d, want := codec.NewDec(h.Fields), s.neighborFields(opt)
	if got := d.Bytes(len(want)); string(got) != string(want) {
		return 0, fmt.Errorf("layout: %s: %w", f.path, errStale)
	}
	c.count, c.entries, c.bytes = d.U64(), d.U64(), d.U64()
	sum = d.U32()
	switch {
	case d.Err() != nil:
		return 0, f.damage(0, 0, "header: %v", d.Err())
	case c.count > s.meta.Nodes || c.bytes > uint64(opt.cacheBytes) || c.entries > s.meta.Edges:
		return 0, f.damage(0, 0, "header: %d lists of %d entries in %d bytes are too many", c.count,
			c.entries, c.bytes)
	}
	return sum, nil
}

// ordered checks that ids ascend and lists follow each other; it says what is wrong.
func (c *neighborCache) ordered(nodes uint64) string {
	for i, v := range c.ids {
		if uint64(v) >= nodes || i > 0 && v <= c.ids[i-1] {
			return fmt.Sprintf("list %d is that of node %d", i, v)
		}
	}
	at := uint64(0)
	for i, start := range c.starts {
		now := c.bases[i/baseLists] + uint64(start)
		if now < at || now > c.bytes {
			return fmt.Sprintf("list %d begins at byte %d of %d", i, now, c.bytes)
		}
		at = now
	}
	return ""
}

// neighbors loads or makes the neighbor cache of a direction. note is for the user: why an earlier
// cache was not taken, or this one not kept.
func (s *Store) neighbors(ctx context.Context, dev blockdev.Device, dir Direction,
	ix *topologyIndex, opt neighborOptions) (c *neighborCache, made bool, note string, err error) {
	c, err = s.loadNeighbors(ctx, dev, dir, opt)
	switch {
	case err == nil:
		return c, false, "", nil
	case oserror.IsNotExist(err), errors.Is(err, errStale):
	case ctx.Err() != nil, errors.As(err, new(*mem.LimitError)):
		return nil, false, "", err
	default: // damaged, of another version, or not readable: nothing is lost with it
		note = fmt.Sprintf("neighbor cache is made again: %v", err)
	}
	w := neighborBuilder{s: s, dev: dev, dir: dir, ix: ix, opt: opt}
	if c, err = w.build(ctx); err != nil {
		return nil, false, "", err
	}
	if err := s.saveNeighbors(dir, opt, c); err != nil {
		if note != "" {
			note += "; "
		}
		note += fmt.Sprintf("neighbor cache is not kept for the next run: %v", err)
	}
	return c, true, note, nil
}
