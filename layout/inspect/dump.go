package inspect

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgefile"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"
)

// BlockOf names a block of a file of the store. Decode prints its fields by name.
type BlockOf struct {
	Path   string
	Number int64
	Decode bool
}

// DumpBlock prints a block of a data file to w, with its fields by name or as plain hexadecimal.
// Block 0 is the header. The other blocks are numbered as Check numbers them: blocks of lists, and
// pages of rows, of checksums and of indexes. Damaged blocks are printed too, with a mark.
func DumpBlock(ctx context.Context, s *layout.Store, dev blockdev.Device, of BlockOf,
	w io.Writer) (err error) {
	path, block, decode := of.Path, of.Number, of.Decode
	m, err := fileMeta(s, path)
	if err != nil {
		return err
	}
	f, err := s.OpenFile(dev, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if m.Kind == layout.KindColumn && block != 0 {
		return dumpColumn(ctx, s, dev, of, w)
	}
	unit, err := blockUnit(s, m)
	if err != nil {
		return fmt.Errorf("layout: dump %s: %w", path, err)
	}
	last := (f.Size() - codec.HeaderBytes) / unit
	if block < 0 || block > last {
		return fmt.Errorf("layout: dump %s: it has the blocks 0 to %d, not %d", path, last, block)
	}
	off := codec.HeaderBytes + (block-1)*unit
	if block == 0 {
		off, unit = 0, codec.HeaderBytes
	}
	buf, err := mem.NewArena(nil, "block", unit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	if err := f.Read(ctx, off, buf.Bytes()); err != nil {
		return fmt.Errorf("layout: read %s: %w", path, err)
	}
	d := dumper{ctx: ctx, s: s, dev: dev, f: f, kind: m.Kind, b: buf.Bytes()}
	d.Dump = codec.NewDump(d.b)
	if m.Kind == layout.KindIndexIn || m.Kind == layout.KindIndexOut {
		if err := d.readFields(); err != nil && block > 0 {
			d.Note("header: %v", err)
		}
	}
	if !decode {
		d.Hex(len(d.b))
	} else if err := d.block(block); err != nil {
		return err
	}
	_, err = d.WriteTo(w)
	return err
}

// dumpColumn prints a block of a column, which is as long as its rows need.
func dumpColumn(ctx context.Context, s *layout.Store, dev blockdev.Device, of BlockOf,
	w io.Writer) (err error) {
	r, err := columnfile.OpenPath(ctx, s, dev, of.Path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if of.Number < 0 || uint64(of.Number) > r.Blocks() {
		return fmt.Errorf("layout: dump %s: it has the blocks 0 to %d, not %d", of.Path,
			r.Blocks(), of.Number)
	}
	b, err := r.ReadBlock(ctx, uint64(of.Number))
	if err != nil {
		return err
	}
	d := codec.NewDump(b)
	if of.Decode {
		r.DumpBlock(d, uint64(of.Number), b)
	}
	d.Hex(d.Remaining())
	_, err = d.WriteTo(w)
	return err
}

// fileMeta returns the record of a file of the store.
func fileMeta(s *layout.Store, path string) (kv.FileMeta, error) {
	var names []string
	for _, m := range s.Meta().Files {
		if m.Path == path {
			return m, nil
		}
		names = append(names, m.Path)
	}
	return kv.FileMeta{}, fmt.Errorf("layout: the store has no file %q; it has %s", path,
		strings.Join(names, ", "))
}

// blockUnit returns the size of a block of a file.
func blockUnit(s *layout.Store, m kv.FileMeta) (int64, error) {
	switch m.Kind {
	case layout.KindTopologyIn, layout.KindTopologyOut:
		return int64(max(s.Meta().BlockBytes, listfile.BlockMin)), nil
	case layout.KindRows:
		shape, err := rowsShapeOf(s, m.Path)
		return int64(shape.PageBytes), err
	}
	return layout.PageBytes, nil
}

// rowsShapeOf returns the shape of the rows that a file holds, or of whose checksums it holds.
func rowsShapeOf(s *layout.Store, path string) (rowfile.Shape, error) {
	m, _, ok := rowfile.MetaOf(s.Meta(), path)
	if !ok {
		return rowfile.Shape{}, errors.New("the catalog does not say whose rows these are")
	}
	return rowfile.NewShape(m, s.Meta().Nodes)
}

// dumper prints one block.
type dumper struct {
	*codec.Dump
	ctx  context.Context
	s    *layout.Store
	dev  blockdev.Device
	f    *layout.File
	kind string
	b    []byte

	fields listfile.Fields // the fields of an index's header
}

// block decodes a block by the kind of its file.
func (d *dumper) block(n int64) error {
	if n == 0 {
		d.header()
		return nil
	}
	if d.kind == layout.KindRows {
		return d.rows(n)
	}
	want, sum := codec.NewDec(d.b).U32(), codec.BlockSum(d.kind, d.s.Meta().UUID, uint64(n),
		d.b[4:])
	d.checksum(want, sum)
	switch d.kind {
	case layout.KindTopologyIn, layout.KindTopologyOut:
		return d.lists()
	case layout.KindIndexIn, layout.KindIndexOut:
		d.index(n)
	case layout.KindSums:
		d.numbers("checksums of units", (n-1)*rowfile.SumsPerPage, "%08x")
	case ids.ForwardKind, ids.ReverseKind:
		ids.DumpBlock(d.Dump, d.kind, d.b)
	case edgefile.Kind("train"), edgefile.Kind("val"), edgefile.Kind("test"):
		d.edges(n)
	default:
		d.Hex(d.Remaining())
	}
	return nil
}

func (d *dumper) checksum(want, got uint32) {
	if want == got {
		d.Field(4, "crc32c %08x ok", want)
	} else {
		d.Field(4, "crc32c %08x BAD: the bytes give %08x", want, got)
	}
}

// header prints the first block of any file.
func (d *dumper) header() {
	c := codec.NewDec(d.b)
	d.checksum(c.U32(), codec.Checksum(d.b[4:]))
	d.Field(4, "magic %q", c.Bytes(4))
	d.Field(4, "version %d", c.U32())
	d.Field(4, "kind %q", c.Bytes(4))
	d.Field(16, "store %s", hex.EncodeToString(c.Bytes(16)))
	n := c.U32()
	d.Field(4, "length of the fields %d", n)
	fields := c.Bytes(int(n))
	end := d.Off() + len(fields)
	switch d.kind {
	case layout.KindTopologyIn, layout.KindTopologyOut, layout.KindIndexIn, layout.KindIndexOut:
		d.topologyFields(codec.NewDec(fields))
	case layout.KindRows, layout.KindSums:
		d.rowsFields(codec.NewDec(fields))
	case layout.KindColumn:
		c := codec.NewDec(fields)
		d.Field(4, "layout %d", c.U32())
		d.Field(8, "dimensions %d", c.U64())
		d.typeAndName(c)
	case edgefile.Kind("train"), edgefile.Kind("val"), edgefile.Kind("test"):
		c := codec.NewDec(fields)
		d.Field(4, "layout %d", c.U32())
		d.Field(8, "nodes %d", c.U64())
		d.Field(4, "types %d", c.U32())
	}
	if d.Off() < end {
		d.Field(end-d.Off(), "further fields")
	}
	d.Zeros(d.Remaining())
}

func (d *dumper) topologyFields(c *codec.Dec) {
	d.Field(4, "layout %d", c.U32())
	d.Field(4, "block bytes %d", c.U32())
	flags := c.U32()
	d.Field(4, "flags %d: types %t, weights %t, times %t", flags, flags&1 != 0, flags&2 != 0,
		flags&4 != 0)
	d.Field(8, "nodes %d", c.U64())
}

func (d *dumper) rowsFields(c *codec.Dec) {
	for _, name := range []string{"layout", "elements a row", "row bytes", "page bytes",
		"bytes a checksum"} {
		d.Field(4, "%s %d", name, c.U32())
	}
	d.Field(8, "rows %d", c.U64())
	d.typeAndName(c)
}

func (d *dumper) typeAndName(c *codec.Dec) {
	for _, name := range []string{"type", "name"} {
		v := c.String()
		d.Field(4+len(v), "%s %q", name, v)
	}
}

// index prints a page of first nodes, or the last page of an index.
func (d *dumper) index(n int64) {
	if edges, blocks, err := listfile.DecodeIndexEnd(d.b); err == nil {
		d.Field(4, "magic %q", listfile.IndexEnd)
		d.Field(8, "edges %d", edges)
		d.Field(8, "blocks %d", blocks)
		d.Zeros(d.Remaining())
		return
	}
	d.begins(n)
}

// begins prints where blocks begin, in the layout that the header of the index names.
func (d *dumper) begins(n int64) {
	first := (n-1)*d.fields.IndexPerPage() + 1
	if d.fields.IndexPerPage() != listfile.IndexPerPage {
		d.numbers("first nodes of blocks", first, "%d")
		return
	}
	d.series("node/position of blocks", first, 8, func(c *codec.Dec) string {
		return fmt.Sprintf(" %d/%d", c.U32(), c.U32())
	})
}

// readFields reads the fields of the header of an index, which describe its pages.
func (d *dumper) readFields() error {
	h, err := d.f.ReadHeader(d.ctx, d.kind, d.s.Meta().UUID)
	if err == nil {
		d.fields, err = listfile.DecodeFields(h.Fields)
	}
	return err
}

// numbers prints the rest of the page as numbers. The first has the number first.
func (d *dumper) numbers(what string, first int64, format string) {
	d.series(what, first, 4, func(c *codec.Dec) string { return fmt.Sprintf(" "+format, c.U32()) })
}

// lineBytes is how much of a series is printed on a line, in bytes.
const lineBytes = 32

// series prints the rest of the page up to its last zeros: entries of size bytes, some a line.
// The first has the number first.
func (d *dumper) series(what string, first int64, size int, entry func(c *codec.Dec) string) {
	left := len(bytes.TrimRight(d.b[d.Off():], "\x00"))
	left = min((left+size-1)/size*size, d.Remaining()/size*size)
	for ; left > 0; left -= min(left, lineBytes) {
		n := min(left, lineBytes)
		var text strings.Builder
		for c := codec.NewDec(d.b[d.Off():][:n]); c.Remaining() > 0; {
			text.WriteString(entry(c))
		}
		count := int64(n / size)
		d.Field(n, "%s %d to %d:%s", what, first, first+count-1, text.String())
		first += count
	}
	d.Zeros(d.Remaining())
}
