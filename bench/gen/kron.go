package gen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/internal/tables"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// KronOptions describe the expansion of a real graph: its adjacency matrix times a small random
// one, by Kronecker. Node v becomes the copies v, N+v, 2N+v, …; an edge from u to v becomes one
// from copy a of u to copy b of v wherever the small matrix has a 1 at (a, b). So degrees keep the
// shape of their distribution and what was near in the order of ids stays near. Memory is bounded:
// 4 bytes per member of a split, the reader's 4 bytes a checksum, and buffers.
type KronOptions struct {
	In     string // a store, or a source that ingest takes
	Factor int    // copies of each node: the size of the small matrix
	// EdgeFactor is how many edges each edge becomes: the ones of the small matrix, which is
	// symmetric with a full diagonal. 0 takes 2*Factor; what has not the parity of Factor is
	// rounded up.
	EdgeFactor int
	Dim        int     // of the features: rows are repeated or cut to it; 0 keeps it
	Noise      float64 // of each value of a copy but the first, as a share of it
	Seed       uint64
	Out        string
	Memory     int64 // of ingest, where In is no store
	FS         vfs.FS
	Progress   func(phase string, done, total int64, unit string)
}

// noiseMost is a noise of ten times the values: what they were is gone long before.
const noiseMost = 10

// Validate says what is wrong with the options.
func (o *KronOptions) Validate() error {
	most := o.Factor * o.Factor
	switch {
	case o.In == "":
		return errors.New("bench: gen kron: no --in DIR or STORE")
	case o.Out == "":
		return errors.New("bench: gen kron: no --out DIR")
	case o.Factor < 1 || o.Factor > 1<<12:
		return fmt.Errorf("bench: gen kron: --factor %d: want 1 to 4096", o.Factor)
	case o.EdgeFactor != 0 && (o.EdgeFactor < o.Factor || o.EdgeFactor > most):
		return fmt.Errorf("bench: gen kron: --edge-factor %d: want %d to %d", o.EdgeFactor,
			o.Factor, most)
	case o.Dim < 0:
		return fmt.Errorf("bench: gen kron: --dim %d is negative", o.Dim)
	case !(o.Noise >= 0 && o.Noise <= noiseMost):
		return fmt.Errorf("bench: gen kron: --noise %g: want 0 to %d", o.Noise, noiseMost)
	}
	return nil
}

// Kron writes an array directory as Make does, with labels of whatever kind the graph has: classes
// by number. The same options give the same bytes.
func Kron(ctx context.Context, o KronOptions) (made Made, err error) {
	if err := o.Validate(); err != nil {
		return made, err
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	err = wholeDir(o.FS, o.Out, func(dir string) error {
		o.Out = dir
		made, err = o.expand(ctx, dev)
		return err
	})
	if err != nil {
		return Made{}, fmt.Errorf("bench: gen kron: %w", err)
	}
	return made, nil
}

// expand writes the arrays.
func (o *KronOptions) expand(ctx context.Context, dev blockdev.Device) (made Made, err error) {
	store, done, err := o.open(ctx)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, done()) }()
	nodes := store.Meta().Nodes
	if nodes == 0 || nodes > (1<<32)/uint64(o.Factor) {
		return made, fmt.Errorf("%d nodes times %d are not between 1 and 2^32", nodes, o.Factor)
	}
	k := &kron{KronOptions: *o, store: store, dev: dev, nodes: nodes,
		g: &generator{Options: Options{Out: o.Out, FS: o.FS, Progress: o.Progress}, ctx: ctx}}
	k.ones = kronMatrix(o.Factor, o.EdgeFactor, o.Seed)
	for _, step := range []func(context.Context) error{k.edges, k.features, k.labels, k.splits} {
		if err := step(ctx); err != nil {
			return made, err
		}
	}
	return Made{Nodes: nodes * uint64(o.Factor),
		Edges: store.Meta().Edges * uint64(len(k.ones))}, nil
}

// open opens the graph to expand; one that is no store yet is ingested beside the output, and done
// removes it.
func (o *KronOptions) open(ctx context.Context) (s *layout.Store, done func() error, err error) {
	s, err = layout.OpenLive(ctx, o.FS, o.In)
	if !errors.Is(err, kv.ErrNoStore) {
		return s, func() error { return nil }, err
	}
	dir := o.FS.PathJoin(o.Out, "source.gdb")
	done = func() error { return o.FS.RemoveAll(dir) }
	_, err = ingest.Run(ctx, o.FS, ingest.Options{Options: source.Options{Sources: []string{o.In},
		Memory: o.Memory}, Out: dir, Progress: o.Progress})
	if err == nil {
		s, err = layout.Open(ctx, o.FS, dir)
	}
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return s, done, nil
}

type kron struct {
	KronOptions
	store *layout.Store
	dev   blockdev.Device
	nodes uint64
	ones  [][2]uint64
	g     *generator
}

// Purposes of the random numbers, apart from those of Make.
const (
	kronCell = iota + 100
	kronNoise
)

// kronMatrix lists the ones of the small matrix: the diagonal, so that no node loses its edges,
// and random pairs of cells that mirror each other. Memory: a bit a cell, 2 MiB at most, and 16
// bytes a one.
func kronMatrix(size, ones int, seed uint64) [][2]uint64 {
	ones = cmp.Or(ones, min(2*size, size*size))
	var cells [][2]uint64
	for a := range uint64(size) {
		cells = append(cells, [2]uint64{a, a})
	}
	taken := make([]uint64, (size*size+63)/64)
	s := rng.NewStream(rng.Key(seed, kronCell))
	for len(cells) < ones {
		a, b := s.Below(uint64(size)), s.Below(uint64(size))
		cell, mirror := a*uint64(size)+b, b*uint64(size)+a
		if a == b || taken[cell/64]&(1<<(cell%64)) != 0 {
			continue
		}
		taken[cell/64] |= 1 << (cell % 64)
		taken[mirror/64] |= 1 << (mirror % 64)
		cells = append(cells, [2]uint64{a, b}, [2]uint64{b, a})
	}
	return cells
}

func (k *kron) edges(ctx context.Context) (err error) {
	total := k.store.Meta().Edges
	w, err := tables.CreateArray(k.FS, k.FS.PathJoin(k.Out, "edges.npy"), "<u4",
		total*uint64(len(k.ones)), 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	out := make([]uint32, 0, 2*genChunk)
	flush := func() error {
		_, err := w.Write(mem.BytesOf(out))
		out = out[:0]
		return errors.Join(err, ctx.Err())
	}
	read := int64(0)
	err = topology.Scan(ctx, k.store, k.dev, layout.In, func(first layout.NodeID, _ bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			v := uint64(first) + uint64(i)
			for _, u := range l.Nbrs[l.Off[i]:l.Off[i+1]] {
				for _, c := range k.ones {
					out = append(out, uint32(c[0]*k.nodes+uint64(u)), uint32(c[1]*k.nodes+v))
					if len(out) == cap(out) {
						if err := flush(); err != nil {
							return err
						}
					}
				}
			}
		}
		read += int64(len(l.Nbrs))
		if k.Progress != nil {
			k.Progress("edges", read, int64(total), "edges")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// copies calls read with runs of source rows, once for each copy: to is the first of their rows in
// the output.
func (k *kron) copies(rows int, read func(to uint64, first layout.NodeID, n int) error) error {
	for c := range uint64(k.Factor) {
		for first := uint64(0); first < k.nodes; first += uint64(rows) {
			n := min(uint64(rows), k.nodes-first)
			if err := read(c*k.nodes+first, layout.NodeID(first), int(n)); err != nil {
				return err
			}
			if k.Progress != nil {
				k.Progress("rows", int64(c*k.nodes+first+n), int64(k.nodes)*int64(k.Factor), "rows")
			}
		}
	}
	return nil
}

func (k *kron) features(ctx context.Context) (err error) {
	m := k.store.Meta()
	if len(m.Features) == 0 {
		return nil
	}
	from := m.Features[0].Dim
	dim := from
	if k.Dim > 0 {
		dim = k.Dim
	}
	rows, err := rowfile.Open(ctx, k.store, k.dev, m.Features[0], nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	w, err := tables.CreateArray(k.FS, k.FS.PathJoin(k.Out, "features.npy"), "<f4",
		k.nodes*uint64(k.Factor), uint64(dim))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	chunk := max(1, genChunk*64/max(from, dim))
	in, out := make([]float32, chunk*from), make([]float32, chunk*dim)
	return k.copies(chunk, func(to uint64, first layout.NodeID, n int) error {
		if err := rows.Scan(ctx, first, n, in[:n*from]); err != nil {
			return err
		}
		for i := range n {
			k.row(to+uint64(i), in[i*from:(i+1)*from], out[i*dim:(i+1)*dim])
		}
		_, err := w.Write(mem.BytesOf(out[:n*dim]))
		return err
	})
}

// row writes the features of a copy of a node: the first copy's are as they were, as far as they
// go; others, and what repeats, are off by some share, which leaves zeros zero.
func (k *kron) row(v uint64, in, out []float32) {
	same := 0
	if v < k.nodes {
		same = copy(out, in)
	}
	r := rand.New(rand.NewPCG(rng.Key(k.Seed, kronNoise), v))
	for j := same; j < len(out); j++ {
		out[j] = in[j%len(in)] * float32(1+k.Noise*r.NormFloat64())
	}
}

// labels repeats the labels of each node for its copies.
func (k *kron) labels(ctx context.Context) (err error) {
	l := k.store.Meta().Labels
	if l == nil {
		return nil
	}
	rows, err := rowfile.Open(ctx, k.store, k.dev, l.Rows, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	name, descr, shape := "labels.npy", "<i4", []uint64{k.nodes * uint64(k.Factor)}
	switch l.Kind {
	case "target":
		descr = "<f4"
	case "multi":
		pairs := uint64(0)
		for _, n := range l.ClassCounts {
			pairs += n
		}
		name, descr, shape = "labels_coo.npy", "<i8", []uint64{pairs * uint64(k.Factor), 2}
	}
	w, err := tables.CreateArray(k.FS, k.FS.PathJoin(k.Out, name), descr, shape...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	width := l.Rows.RowBytes
	buf := make([]byte, genChunk*width)
	return k.copies(genChunk, func(to uint64, first layout.NodeID, n int) error {
		b := buf[:n*width]
		if err := rows.ScanRaw(ctx, first, n, b); err != nil {
			return err
		}
		if l.Kind == "multi" {
			b = mem.BytesOf(setBits(to, b, width))
		}
		_, err := w.Write(b)
		return err
	})
}

// setBits lists the (node, class) pairs of bit rows.
func setBits(first uint64, rows []byte, width int) (pairs []int64) {
	for i, b := range rows {
		for ; b != 0; b &= b - 1 {
			class := i%width*8 + bits.TrailingZeros8(b)
			pairs = append(pairs, int64(first)+int64(i/width), int64(class))
		}
	}
	return pairs
}

// splits repeats the members of train, val and test; of several columns the default one's.
func (k *kron) splits(ctx context.Context) error {
	m := k.store.Meta()
	for _, name := range []string{"train", "val", "test"} {
		stored := name
		if !slices.ContainsFunc(m.Splits, func(s kv.SplitMeta) bool { return s.Name == name }) {
			stored = name + "@" + strconv.Itoa(m.SplitColumn)
		}
		set, err := k.store.Split(ctx, stored)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		ids := set.ToArray()
		if len(ids) == 0 {
			continue
		}
		n := uint64(len(ids))
		err = array(k.g, name+"_idx", "<i8", []uint64{n * uint64(k.Factor)},
			func(first uint64, out []int64) {
				for i := range out {
					at := first + uint64(i)
					out[i] = int64(at/n*k.nodes + uint64(ids[at%n]))
				}
			})
		if err != nil {
			return err
		}
	}
	return nil
}
