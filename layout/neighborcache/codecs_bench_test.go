package neighborcache

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"
)

// BenchmarkListCodecs holds the form of cached lists against zstd, list by list, on the first lists
// of a store: bytes a neighbor, with heads and without the index, in the form of the cache, by
// zstd, and if each list had the smaller of the two; the share of lists, and of neighbors, that
// zstd makes smaller; and the time to decode a neighbor of these in both forms.
//
//	GDB_BENCH_STORE=graph.gdb go test ./layout -run xxx -bench ListCodecs
func BenchmarkListCodecs(b *testing.B) {
	lists := benchLists(b)
	for _, deltas := range []bool{false, true} {
		b.Run(fmt.Sprintf("deltas=%v", deltas), func(b *testing.B) {
			c := newListCodecs(b, lists, deltas)
			defer c.dec.Close()
			var cached, packed time.Duration
			for b.Loop() {
				begun := time.Now()
				c.decodeCached(b)
				cached += time.Since(begun)
				begun = time.Now()
				c.decodePacked(b)
				packed += time.Since(begun)
			}
			c.report(b)
			per := float64(b.N) * float64(max(c.entries, 1))
			b.ReportMetric(float64(cached.Nanoseconds())/per, "ns/neighbor")
			b.ReportMetric(float64(packed.Nanoseconds())/per, "zstd-ns/neighbor")
		})
	}
}

// listCodecs are lists in both forms.
type listCodecs struct {
	lists, smaller [][]uint32 // all, and those that zstd makes smaller
	cached, packed [][]byte   // of smaller
	bytes          [3]int     // of all lists: cached, packed, and the smaller form of each
	entries        int        // of smaller
	dec            *zstd.Decoder
	deltas         bool
}

func newListCodecs(b *testing.B, lists [][]uint32, deltas bool) *listCodecs {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithEncoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	c := &listCodecs{lists: lists, deltas: deltas}
	if c.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
		b.Fatal(err)
	}
	for _, l := range lists {
		plain := mem.BytesOf(l)
		if deltas {
			plain = nil
			before := uint32(0)
			for _, v := range l {
				plain, before = binary.AppendUvarint(plain, uint64(v-before)), v
			}
		}
		cached, packed := appendList(nil, l, true), enc.EncodeAll(plain, nil)
		c.bytes[0] += len(cached)
		c.bytes[1] += len(packed)
		c.bytes[2] += min(len(cached), len(packed))
		if len(packed) < len(cached) {
			c.smaller, c.entries = append(c.smaller, l), c.entries+len(l)
			c.cached, c.packed = append(c.cached, cached), append(c.packed, packed)
		}
	}
	return c
}

func (c *listCodecs) report(b *testing.B) {
	entries := 0
	for _, l := range c.lists {
		entries += len(l)
	}
	for i, unit := range []string{"B/neighbor", "zstd-B/neighbor", "smaller-B/neighbor"} {
		b.ReportMetric(float64(c.bytes[i])/float64(entries), unit)
	}
	b.ReportMetric(100*float64(len(c.smaller))/float64(len(c.lists)), "%lists")
	b.ReportMetric(100*float64(c.entries)/float64(entries), "%neighbors")
}

func (c *listCodecs) decodeCached(b *testing.B) {
	scratch := make([]uint32, ChunkEntries)
	var pos []uint32
	var out []layout.NodeID
	for i, l := range c.smaller {
		for len(pos) < len(l) {
			pos, out = append(pos, uint32(len(pos))), append(out, 0)
		}
		list, err := parseList(c.cached[i])
		if err == nil {
			err = list.gather(pos[:len(l)], scratch, out)
		}
		if err != nil || out[len(l)-1] != layout.NodeID(l[len(l)-1]) {
			b.Fatal(i, err)
		}
	}
}

func (c *listCodecs) decodePacked(b *testing.B) {
	var bytes []byte
	var out []uint32
	for i, l := range c.smaller {
		var err error
		if bytes, err = c.dec.DecodeAll(c.packed[i], bytes[:0]); err != nil {
			b.Fatal(err)
		}
		out = slices.Grow(out[:0], len(l))[:len(l)]
		if c.deltas {
			undelta(out, bytes)
		} else {
			copy(mem.BytesOf(out), bytes)
		}
		if out[len(l)-1] != l[len(l)-1] {
			b.Fatal(i)
		}
	}
}

// undelta decodes varints of differences.
func undelta(out []uint32, b []byte) {
	before := uint32(0)
	for i := range out {
		d, n := binary.Uvarint(b)
		before += uint32(d)
		out[i], b = before, b[n:]
	}
}

// benchLists are lists of the store that GDB_BENCH_STORE names, up to 2 million entries.
func benchLists(b *testing.B) (lists [][]uint32) {
	dir := os.Getenv("GDB_BENCH_STORE")
	if dir == "" {
		b.Skip("GDB_BENCH_STORE names no store")
	}
	ctx := context.Background()
	s, err := layout.Open(ctx, vfs.Default, dir)
	if err != nil {
		b.Fatal(err)
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	entries := 0
	err = listfile.Scan(ctx, s, dev, layout.In, func(_ layout.NodeID, cont bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			part := mem.View[uint32](mem.BytesOf(l.Nbrs[l.Off[i]:l.Off[i+1]]))
			if entries += len(part); entries > 2<<20 {
				return nil
			}
			if cont && i == 0 {
				lists[len(lists)-1] = append(lists[len(lists)-1], part...)
			} else if len(part) > 0 {
				lists = append(lists, append([]uint32(nil), part...))
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return lists
}
