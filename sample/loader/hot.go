package loader

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"

	"github.com/cockroachdb/errors/oserror"
)

// The hot nodes of a store, hottest first, are kept in prep/hot.nodes: a header (codec.Header) with
//
//	0        4       12      20        24
//	+--------+-------+-------+---------+
//	| layout | asked | count | crc32c  |
//	+--------+-------+-------+---------+
//
// Then come their ids, with zeros to a whole page. Count is less than asked if the graph has fewer
// nodes in lists. The first ids of the file serve a smaller cache. The file can be made again, so
// one that is damaged or has too few ids is replaced.
const (
	hotPath = "prep/hot.nodes"
	hotKind = "GHOT"
	// hotLayout is the version of the file and of the rule by which nodes are chosen.
	hotLayout = 1
)

// errFew is returned for a file that has fewer nodes than are asked for, or is of another version.
var errFew = errors.New("made for a smaller cache, or by another version")

// keptHotNodes returns the nodes that an earlier run found or, if it left none, those that list
// finds.
func (s *Source) keptHotNodes(ctx context.Context, limit int,
	list func(limit int) ([]sample.NodeID, error)) ([]sample.NodeID, error) {
	hot, err := s.readHot(ctx, limit)
	switch {
	case err == nil:
		return hot, nil
	case oserror.IsNotExist(err), errors.Is(err, errFew):
	case ctx.Err() != nil, errors.As(err, new(*mem.LimitError)):
		return nil, err
	default: // damaged or not readable: nothing is lost with it
		s.HotNote = fmt.Sprintf("the list of hot nodes is made again: %v", err)
	}
	if hot, err = list(limit); err != nil {
		return nil, err
	}
	if err := s.writeHot(hot, limit); err != nil {
		s.HotNote = fmt.Sprintf("the list of hot nodes is not kept for the next run: %v", err)
	}
	return hot, nil
}

// readHot reads the first limit nodes that were kept. The caller has counted 8 bytes for each.
func (s *Source) readHot(ctx context.Context, limit int) (hot []sample.NodeID, err error) {
	f, err := s.Store.OpenFile(s.Device, hotPath)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h, err := f.ReadHeader(ctx, hotKind, s.Meta.UUID)
	if err != nil {
		return nil, err
	}
	d := codec.NewDec(h.Fields)
	version, asked, count, sum := d.U32(), d.U64(), d.U64(), d.U32()
	switch {
	case d.Err() != nil:
		return nil, f.Damage(0, 0, "header: %v", d.Err())
	case version != hotLayout || asked < uint64(limit):
		return nil, fmt.Errorf("loader: %s: %w", f.Path, errFew)
	case count > asked || count > s.Meta.Nodes:
		return nil, f.Damage(0, 0, "header: %d nodes of %d, %d were asked for", count, s.Meta.Nodes,
			asked)
	}
	return s.readHotIDs(ctx, f, int(count), limit, sum)
}

// hotStep is how many ids are read together.
const hotStep = 1 << 20

// readHotIDs reads and verifies count ids, and returns the first of them.
func (s *Source) readHotIDs(ctx context.Context, f *layout.File, count, limit int,
	want uint32) (hot []sample.NodeID, err error) {
	left := hotBytes(count)
	if err := f.CheckSize(codec.HeaderBytes + left); err != nil {
		return nil, err
	}
	buf, err := mem.NewArena(nil, "hot nodes", min(4*hotStep, max(left, layout.PageBytes)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	hot = make([]sample.NodeID, 0, min(count, limit))
	sum, off := codec.BlockSum(hotKind, s.Meta.UUID, 1), int64(codec.HeaderBytes)
	for left > 0 {
		part := buf.Bytes()[:min(left, int64(len(buf.Bytes())))]
		if err := f.Read(ctx, off, part); err != nil {
			return nil, err
		}
		sum = codec.ChecksumUpdate(sum, part)
		off, left = off+int64(len(part)), left-int64(len(part))
		for _, v := range mem.View[sample.NodeID](part) {
			if len(hot) == cap(hot) {
				break
			}
			if uint64(v) >= s.Meta.Nodes {
				return nil, f.Damage(1, codec.HeaderBytes, "node %d of %d", v, s.Meta.Nodes)
			}
			hot = append(hot, v)
		}
	}
	if sum != want {
		return nil, f.Damage(1, codec.HeaderBytes, "checksum is %08x, its bytes give %08x", want,
			sum)
	}
	return hot, nil
}

// hotBytes returns the size in the file of this number of ids, in whole pages.
func hotBytes(count int) int64 {
	return (4*int64(count) + layout.PageBytes - 1) / layout.PageBytes * layout.PageBytes
}

// writeHot writes the nodes to the store for later runs.
func (s *Source) writeHot(hot []sample.NodeID, asked int) error {
	ids := mem.BytesOf(hot)
	padding := make([]byte, hotBytes(len(hot))-int64(len(ids)))
	return s.Store.WritePrep(hotPath, s.hotHeader(ids, padding, asked), ids, padding)
}

// hotHeader returns the header of a file with these ids.
func (s *Source) hotHeader(ids, padding []byte, asked int) []byte {
	var e codec.Enc
	e.U32(hotLayout)
	e.U64(uint64(asked))
	e.U64(uint64(len(ids) / 4))
	e.U32(codec.BlockSum(hotKind, s.Meta.UUID, 1, ids, padding))
	h := codec.Header{Kind: hotKind, UUID: s.Meta.UUID, Fields: e.B}
	return h.Encode()
}
