package ids

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/pace"
	"gdb/internal/trace"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// forwardFile looks external ids up.
type forwardFile struct {
	f     *idFile
	seed  uint64
	nodes uint64
	first []uint64 // the first hash of each data block
}

// openForward opens ids/forward.ids and loads its index.
func openForward(ctx context.Context, dev blockdev.Device, fs vfs.FS, dir string,
	m *kv.Meta) (*forwardFile, error) {
	f, err := openIDFile(ctx, dev, fs, dir, forwardForm, m)
	if err != nil {
		return nil, err
	}
	w := &forwardFile{f: f, nodes: m.Nodes, seed: m.IDs.HashSeed, first: make([]uint64, 0, f.data)}
	if err := w.check(ctx, m); err != nil {
		return nil, errors.Join(err, f.file.Close())
	}
	return w, nil
}

// check compares the file with the catalog and loads the index.
func (w *forwardFile) check(ctx context.Context, m *kv.Meta) error {
	if err := checkSeed(w.f, m); err != nil {
		return err
	}
	if err := checkEntries(w.f, m); err != nil {
		return err
	}
	return w.f.scanIndex(ctx, 8, func(data, key uint64) error {
		if data > 0 && key < w.first[data-1] {
			return kv.DamagedFile(ForwardPath, "the index does not ascend at block %d", 1+data)
		}
		w.first = append(w.first, key)
		return nil
	})
}

// checkSeed compares the hash seed of ids/forward.ids with the catalog's.
func checkSeed(f *idFile, m *kv.Meta) error {
	d := codec.NewDec(f.header.Fields)
	if seed := d.U64(); d.Err() != nil || d.Remaining() != 0 || seed != m.IDs.HashSeed {
		return damagedBlock(f.rel, 0, "its hash seed is %x, the catalog's %x", seed, m.IDs.HashSeed)
	}
	return nil
}

// checkEntries compares the number of entries with the catalog's number of nodes.
func checkEntries(f *idFile, m *kv.Meta) error {
	if f.entries != m.Nodes {
		return kv.DamagedFile(f.rel, "it holds %d ids, the catalog counts %d nodes", f.entries,
			m.Nodes)
	}
	return nil
}

// lookup finds the node of an external id. It reads one block, and a second one only where the
// entries of one hash straddle two.
func (w *forwardFile) lookup(ctx context.Context, external string) (kv.NodeID, error) {
	return w.lookupHash(ctx, Hash(w.seed, []byte(external)), external)
}

func (w *forwardFile) lookupHash(ctx context.Context, hash uint64,
	external string) (kv.NodeID, error) {
	// at is the first block that begins at hash or after it. Entries of this hash are in the
	// blocks that begin with it, and at the end of the one before; if a block begins with it,
	// that block's flag tells whether the one before has any.
	at := sort.Search(len(w.first), func(i int) bool { return w.first[i] >= hash })
	before := at > 0
	for i := at; i < len(w.first) && w.first[i] == hash; i++ {
		id, found, carried, err := w.inBlock(ctx, i, hash, external)
		if err != nil || found {
			return id, err
		}
		if i == at {
			before = before && carried
		}
	}
	if before {
		id, found, _, err := w.inBlock(ctx, at-1, hash, external)
		if err != nil || found {
			return id, err
		}
	}
	return 0, fmt.Errorf("kv: id %.100q: %w", external, kv.ErrNotFound)
}

// inBlock looks for an id in a data block.
func (w *forwardFile) inBlock(ctx context.Context, data int, hash uint64,
	external string) (id kv.NodeID, found, carried bool, err error) {
	b, release, err := w.f.block(ctx, uint64(data))
	if err != nil {
		return 0, false, false, err
	}
	defer release()
	block, err := decodeForward(b)
	if err != nil {
		return 0, false, false, damagedBlock(ForwardPath, uint64(1+data), "%v", err)
	}
	id, found = block.find(hash, external)
	if found && uint64(id) >= w.nodes {
		return 0, false, false, damagedBlock(ForwardPath, uint64(1+data),
			"id %.100q leads to node %d of %d", external, id, w.nodes)
	}
	return id, found, block.carried, nil
}

// reverseFile looks up the external ids of nodes.
type reverseFile struct {
	f     *idFile
	nodes uint64
	first []kv.NodeID // the first node of each data block
	cache idCache
	hits  atomic.Uint64
}

// openReverse opens ids/reverse.ids and loads its index.
func openReverse(ctx context.Context, dev blockdev.Device, fs vfs.FS, dir string,
	m *kv.Meta) (*reverseFile, error) {
	f, err := openIDFile(ctx, dev, fs, dir, reverseForm, m)
	if err != nil {
		return nil, err
	}
	r := &reverseFile{f: f, nodes: m.Nodes, first: make([]kv.NodeID, 0, f.data)}
	if err := r.check(ctx, m); err != nil {
		return nil, errors.Join(err, f.file.Close())
	}
	return r, nil
}

// check compares the file with the catalog and loads the index.
func (r *reverseFile) check(ctx context.Context, m *kv.Meta) error {
	if err := checkEntries(r.f, m); err != nil {
		return err
	}
	return r.f.scanIndex(ctx, 4, func(data, key uint64) error {
		if data == 0 && key != 0 || data > 0 && key <= uint64(r.first[data-1]) || key >= r.nodes {
			return kv.DamagedFile(ReversePath, "the index says that block %d begins with node %d",
				1+data, key)
		}
		r.first = append(r.first, kv.NodeID(key))
		return nil
	})
}

// lookup appends the ids of nodes to dst. It sorts the nodes, so whatever their order, each block
// is fetched once for every readBlocks blocks. Blocks that are not in the cache are read; adjacent
// blocks are read together.
func (r *reverseFile) lookup(ctx context.Context, nodes []kv.NodeID, dst []string) ([]string,
	error) {
	if err := checkRange(nodes, r.nodes); err != nil {
		return dst, err
	}
	if len(nodes) == 0 {
		return dst, nil
	}
	order := make([]uint64, len(nodes)) // each is node<<32 | place
	for i, v := range nodes {
		order[i] = uint64(v)<<32 | uint64(i)
	}
	if err := pace.SortFunc(ctx, order, cmp.Compare[uint64]); err != nil {
		return dst, err
	}
	base := len(dst)
	dst = append(dst, make([]string, len(nodes))...)
	var buf []byte
	for len(order) > 0 {
		blocks, n := r.group(order)
		if buf == nil {
			buf = blockdev.AlignedBuffer(len(blocks) * BlockBytes)
		}
		if err := r.fill(ctx, blocks, buf, order[:n], dst[base:]); err != nil {
			return dst[:base], err
		}
		order = order[n:]
	}
	return dst, nil
}

// group returns the data blocks that hold the next nodes of order, at most readBlocks, and how many
// nodes these are.
func (r *reverseFile) group(order []uint64) (blocks []uint64, n int) {
	end := uint64(0) // the first node behind the last block of blocks
	for ; n < len(order); n++ {
		id := order[n] >> 32
		if id < end {
			continue
		}
		if len(blocks) == readBlocks {
			break
		}
		at := sort.Search(len(r.first), func(i int) bool { return uint64(r.first[i]) > id })
		blocks, end = append(blocks, uint64(at)), r.nodes // data block at-1 is block at of the file
		if at < len(r.first) {
			end = uint64(r.first[at])
		}
	}
	return blocks, n
}

// fill fetches blocks into buf, and sets dst[i] to the external id of the node of each place i in
// order.
func (r *reverseFile) fill(ctx context.Context, blocks []uint64, buf []byte, order []uint64,
	dst []string) error {
	missed := r.cache.get(blocks, buf, make([]int, 0, len(blocks)))
	hits := uint64(len(blocks) - len(missed))
	r.hits.Add(hits)
	trace.From(ctx).Hit(hits)
	r.f.reads.Add(uint64(len(missed)))
	if err := r.f.readAt(ctx, blocks, buf, missed); err != nil {
		return err
	}
	var steps pace.Steps
	for k, number := range blocks {
		block, err := decodeReverse(buf[k*BlockBytes : (k+1)*BlockBytes])
		if err != nil {
			return damagedBlock(ReversePath, number, "%v", err)
		}
		if block.first != r.first[number-1] {
			return damagedBlock(ReversePath, number, "it begins with node %d, the index says %d",
				block.first, r.first[number-1])
		}
		last := kv.NodeID(0) // the node before; name is its id if has is set
		name, has := "", false
		for len(order) > 0 {
			if err := steps.Took(ctx, 2); err != nil {
				return err
			}
			node, place := kv.NodeID(order[0]>>32), uint32(order[0])
			i := int(node - block.first)
			if i >= block.n && k+1 < len(blocks) {
				break
			}
			if i >= block.n {
				return damagedBlock(ReversePath, number, "node %d is not in it", node)
			}
			if !has || node != last {
				last, name, has = node, string(block.external(i)), true
			}
			dst[place] = name
			order = order[1:]
		}
	}
	r.cache.put(blocks, buf, missed)
	return ctx.Err()
}

// Alternatives finds ids that help a user whose id d does not have. meant is an id that d has and
// that differs only in the case of letters or by a type in front; "" if there is none. examples
// holds the ids of the first nodes, at most two. It is empty if they cannot be read; whoever reads
// these ids next reports what is wrong with the dictionary. It takes one lookup for each type of
// nodes and each case.
func Alternatives(ctx context.Context, d Dictionary, m *kv.Meta, id string) (meant string,
	examples []string) {
	others := []string{strings.ToLower(id), strings.ToUpper(id), titled(id)}
	for _, t := range m.NodeTypes {
		others = append(others, t.Name+":"+id)
	}
	for _, other := range others {
		if _, err := d.Internal(ctx, other); err == nil {
			return other, nil
		}
	}
	examples, err := d.External(ctx, []kv.NodeID{0, 1}[:min(m.Nodes, 2)], nil)
	if err != nil {
		return "", nil
	}
	return "", examples
}

// titled returns a name with its first letter in upper case.
func titled(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return strings.ToUpper(string(r)) + strings.ToLower(name[n:])
}
