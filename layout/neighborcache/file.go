package neighborcache

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/cockroachdb/errors/oserror"
)

// The kinds of the files of neighbor caches, as in their headers.
const (
	KindIn  = "GNIN"
	KindOut = "GNOU"
)

// neighborsLayout is the version of the file and of the rule of choice. Files of other versions are
// made again.
const neighborsLayout = 1

// A neighbor cache is kept in prep/neighbors-in.lists, or -out: a header (codec.Header) with
//
//	0        4            8       16      24      32      40        48      52
//	+--------+------------+-------+-------+-------+-------+---------+-------+---------+
//	| layout | compressed | size  | nodes | edges | lists | entries | bytes | crc32c  |
//	+--------+------------+-------+-------+-------+-------+---------+-------+---------+
//
// and then the arena as it is in memory (see Cache), which the checksum covers. The file can be
// made again, so nothing of the store depends on it: a file that was made for another size, or is
// damaged, is replaced.

func filePath(d layout.Direction) string { return "prep/neighbors-" + d.String() + ".lists" }

func fileKind(d layout.Direction) string {
	return [...]string{layout.In: KindIn, layout.Out: KindOut}[d]
}

// errStale is wrapped if a file is intact, but not for this graph or these options.
var errStale = errors.New("made for another graph, size or version")

// headerFields returns the first fields of the header, which must be equal for a file to be used.
func headerFields(s *layout.Store, opt Options) []byte {
	var e codec.Enc
	e.U32(neighborsLayout)
	compressed := uint32(0)
	if opt.Compress {
		compressed = 1
	}
	e.U32(compressed)
	e.U64(uint64(opt.CacheBytes))
	e.U64(s.Meta().Nodes)
	e.U64(s.Meta().Edges)
	return e.B
}

// save writes a cache for later runs.
func save(s *layout.Store, dir layout.Direction, opt Options, c *Cache) error {
	return s.WritePrep(filePath(dir),
		c.fileParts(fileKind(dir), s.Meta().UUID, headerFields(s, opt))...)
}

// fileParts returns the parts of the file of a cache: its header, which begins with the given
// fields, and the contents of the arena.
func (c *Cache) fileParts(kind string, uuid kv.UUID, fields []byte) [][]byte {
	parts := [][]byte{mem.BytesOf(c.bases)[:c.basesBytes()], mem.BytesOf(c.ids),
		mem.BytesOf(c.starts)[:c.startsBytes()], c.lists}
	padding := c.size()
	for _, p := range parts {
		padding -= int64(len(p))
	}
	parts = append(parts, make([]byte, padding))
	e := codec.Enc{B: fields}
	e.U64(c.count)
	e.U64(c.entries)
	e.U64(c.bytes)
	e.U32(codec.BlockSum(kind, uuid, 1, parts...))
	h := codec.Header{Kind: kind, UUID: uuid, Fields: e.B}
	return slices.Insert(parts, 0, h.Encode())
}

// load reads the cache that an earlier run saved. The error wraps errStale if the file is intact,
// but not what is asked for.
func load(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (c *Cache, err error) {
	f, err := s.OpenFile(dev, filePath(dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c = &Cache{}
	sum, err := c.readHeader(ctx, s, f, dir, opt)
	if err == nil {
		err = f.CheckSize(codec.HeaderBytes + c.size())
	}
	if err != nil {
		return nil, err
	}
	if c.arenas[0], err = mem.NewArena(opt.Budget, "neighbor cache", c.size()); err != nil {
		return nil, err
	}
	if err = f.Read(ctx, codec.HeaderBytes, c.arenas[0].Bytes()); err != nil {
		err = fmt.Errorf("layout: read %s: %w", f.Path, err)
	} else if got := codec.BlockSum(fileKind(dir), s.Meta().UUID, 1,
		c.arenas[0].Bytes()); got != sum {
		err = f.Damage(1, codec.HeaderBytes, "checksum is %08x, its bytes give %08x", sum, got)
	}
	if err == nil {
		c.view()
		if what := c.ordered(layout.CountLists(s.Meta(), dir)); what != "" {
			err = f.Damage(1, codec.HeaderBytes, "%s", what)
		}
	}
	if err == nil {
		err = c.index(layout.CountLists(s.Meta(), dir), opt.Budget)
	}
	if err != nil {
		return nil, errors.Join(err, c.Free())
	}
	return c, nil
}

// readHeader reads the counts and returns the checksum of the arena.
func (c *Cache) readHeader(ctx context.Context, s *layout.Store, f *layout.File,
	dir layout.Direction, opt Options) (sum uint32, err error) {
	h, err := f.ReadHeader(ctx, fileKind(dir), s.Meta().UUID)
	if err != nil {
		return 0, err
	}
	d, want := codec.NewDec(h.Fields), headerFields(s, opt)
	if got := d.Bytes(len(want)); string(got) != string(want) {
		return 0, fmt.Errorf("layout: %s: %w", f.Path, errStale)
	}
	c.count, c.entries, c.bytes = d.U64(), d.U64(), d.U64()
	sum = d.U32()
	switch {
	case d.Err() != nil:
		return 0, f.Damage(0, 0, "header: %v", d.Err())
	case c.count > layout.CountLists(s.Meta(), dir) ||
		c.bytes > uint64(opt.CacheBytes) || c.entries > s.Meta().Edges:
		return 0, f.Damage(0, 0, "header: %d lists of %d entries in %d bytes are too many", c.count,
			c.entries, c.bytes)
	}
	return sum, nil
}

// Damaged returns the error for the list of a node that cannot be decoded, although its file had
// the right checksum.
func Damaged(dir layout.Direction, v layout.NodeID, err error) error {
	return &layout.CorruptionError{Path: filePath(dir), Block: 1, Offset: codec.HeaderBytes,
		What: fmt.Sprintf("node %d: %v; delete the file, it is made again", v, err)}
}

// ordered checks that ids ascend and lists follow each other. It returns what is wrong, or "".
func (c *Cache) ordered(nodes uint64) string {
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

// Open loads or makes the neighbor cache of a direction. made says how it came to be; its note
// tells the user why an earlier cache was not used, or this one not kept.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	ix *listfile.Index, opt Options) (c *Cache, made Stats, err error) {
	c, err = load(ctx, s, dev, dir, opt)
	switch {
	case err == nil:
		return c, made, nil
	case oserror.IsNotExist(err), errors.Is(err, errStale):
	case ctx.Err() != nil, errors.As(err, new(*mem.LimitError)):
		return nil, made, err
	default: // damaged, of another version, or not readable: nothing is lost with it
		made.Note = fmt.Sprintf("neighbor cache is made again: %v", err)
	}
	w := builder{s: s, dev: dev, dir: dir, ix: ix, opt: opt}
	if c, err = w.build(ctx); err != nil {
		return nil, Stats{}, err
	}
	made.Made = true
	if err := save(s, dir, opt, c); err != nil {
		if made.Note != "" {
			made.Note += "; "
		}
		made.Note += fmt.Sprintf("neighbor cache is not kept for the next run: %v", err)
	}
	return c, made, nil
}
