package ids

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"

	"gdb/blockdev"
	"gdb/internal/rng"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// crossBuckets bounds the ranges of nodes whose ids Verify compares between the two files. Each
// range takes 8 bytes for each file.
const crossBuckets = 1 << 16

// Verify checks every block of the dictionary files, and with full also that each external id of
// one file leads back in the other. It goes on after damage, and returns an error only if it could
// not read. Both files are read once, in order. It takes the memory of the index (as Open does), a
// buffer of 1 MiB, and with full 1 MiB of sums, whatever the number of nodes.
func Verify(ctx context.Context, dev blockdev.Device, fs vfs.FS, dir string, m *kv.Meta,
	full bool) ([]kv.Finding, error) {
	if m = m.InDictionary(); m == nil {
		return nil, nil
	}
	v := &idVerifier{ctx: ctx, m: m, full: full}
	forward := newIDSums(m.Nodes)
	err := v.file(dev, fs, dir, forwardForm, func(f *idFile, index []uint64) error {
		return v.forward(f, index, forward)
	})
	if err != nil {
		return v.findings, err
	}
	reverse := newIDSums(m.Nodes)
	err = v.file(dev, fs, dir, reverseForm, func(f *idFile, index []uint64) error {
		if err := v.reverse(f, index, reverse); err != nil {
			return err
		}
		if full && len(v.findings) == 0 {
			v.compare(forward, reverse, index)
		}
		return nil
	})
	return v.findings, err
}

// idSums holds for each range of nodes the sum of a hash of (external id, node) over its entries.
// Two files with equal sums hold the same pairs, in whatever order, except with a probability of
// 2^-64: so the files lead back to each other, and Verify needs no lookups to know it.
type idSums struct {
	nodes uint64
	sums  []uint64
}

func newIDSums(nodes uint64) *idSums {
	return &idSums{nodes: nodes, sums: make([]uint64, min(nodes, crossBuckets))}
}

func (s *idSums) add(external []byte, id kv.NodeID) {
	bucket := uint64(id) * uint64(len(s.sums)) / s.nodes
	s.sums[bucket] += rng.Sub(rng.Hash(uint64(id), external), uint64(id))
}

// first returns the first node of a bucket.
func (s *idSums) first(bucket int) uint64 {
	n := uint64(len(s.sums))
	return (uint64(bucket)*s.nodes + n - 1) / n
}

// idVerifier collects the findings of a Verify.
type idVerifier struct {
	ctx      context.Context
	m        *kv.Meta
	full     bool
	findings []kv.Finding
}

// note keeps an error about damage as a finding, and returns any other error.
func (v *idVerifier) note(err error) error {
	found, err := kv.Findings(err)
	v.findings = append(v.findings, found...)
	return err
}

func (v *idVerifier) noteBlock(path string, block uint64, format string, args ...any) {
	v.findings = append(v.findings, damagedBlock(path, block, format, args...).Finding)
}

// count compares the number of ids in the blocks of a file with its trailer.
func (v *idVerifier) count(f *idFile, n uint64) {
	if n != f.entries {
		v.findings = append(v.findings, kv.DamagedFile(f.rel,
			"its blocks hold %d ids, its trailer counts %d", n, f.entries).Finding)
	}
}

// file opens a file, loads its index and calls do. index is nil if one of its blocks is damaged.
func (v *idVerifier) file(dev blockdev.Device, fs vfs.FS, dir string, form idForm,
	do func(f *idFile, index []uint64) error) error {
	f, err := openIDFile(v.ctx, dev, fs, dir, form, v.m)
	if err != nil {
		return v.note(err)
	}
	err = v.note(checkEntries(f, v.m))
	if err == nil {
		err = v.noteSums(f, 1+f.data, 1+f.data+f.index)
	}
	index := make([]uint64, 0, f.data)
	if err == nil {
		err = f.scanIndex(v.ctx, form.keyBytes, func(_, key uint64) error {
			index = append(index, key)
			return nil
		})
		var found []kv.Finding
		if found, err = kv.Findings(err); len(found) > 0 {
			if len(v.findings) == 0 || v.findings[len(v.findings)-1].Path != form.rel {
				v.findings = append(v.findings, found...)
			}
			index = nil
		}
	}
	if err == nil {
		err = do(f, index)
	}
	return errors.Join(err, f.file.Close())
}

// noteSums adds a finding for every block of first..end-1 whose checksum is wrong.
func (v *idVerifier) noteSums(f *idFile, first, end uint64) error {
	return f.scan(v.ctx, first, end, func(_ uint64, _ []byte, sum error) error {
		return v.note(sum)
	})
}

// forward checks the data blocks of ids/forward.ids.
func (v *idVerifier) forward(f *idFile, index []uint64, sums *idSums) error {
	if err := checkSeed(f, v.m); err != nil {
		return v.note(err)
	}
	w := forwardOrder{v: v, f: f, sums: sums}
	err := f.scan(v.ctx, 1, 1+f.data, func(block uint64, b []byte, sum error) error {
		var d forwardBlock
		if sum == nil {
			var err error
			if d, err = decodeForward(b); err != nil {
				sum = damagedBlock(f.rel, block, "%v", err)
			}
		}
		if sum != nil {
			w.known, w.broken = false, true
			return v.note(sum)
		}
		if index != nil && index[block-1] != d.hash(0) {
			v.noteBlock(f.rel, block, "it begins with hash %016x, the index says %016x", d.hash(0),
				index[block-1])
		}
		w.block(block, &d)
		return nil
	})
	if err == nil && !w.broken {
		v.count(f, w.entries)
	}
	return err
}

// forwardOrder checks that the entries of ids/forward.ids ascend.
type forwardOrder struct {
	v       *idVerifier
	f       *idFile
	sums    *idSums
	known   bool // hash and last hold the entry before
	broken  bool // some block could not be read
	hash    uint64
	last    []byte
	entries uint64
}

// block checks the entries of a block and adds a finding for the first that is wrong.
func (w *forwardOrder) block(block uint64, d *forwardBlock) {
	w.entries += uint64(d.n)
	if carried := w.known && d.hash(0) == w.hash; carried != d.carried && (w.known || block == 1) {
		w.v.noteBlock(w.f.rel, block, "its flag for a carried hash is %v, want %v", d.carried,
			carried)
	}
	what := ""
	for i := range d.n {
		hash, id, external := d.hash(i), d.node(i), d.external(i)
		switch {
		case w.known && (hash < w.hash || hash == w.hash && bytes.Compare(external, w.last) <= 0):
			what = "does not come after the one before"
		case uint64(id) >= w.v.m.Nodes:
			what = fmt.Sprintf("leads to node %d of %d", id, w.v.m.Nodes)
		case w.v.full && hash != Hash(w.v.m.IDs.HashSeed, external):
			what = fmt.Sprintf("stands under hash %016x, which is not its own", hash)
		case w.v.full:
			w.sums.add(external, id)
		}
		if what != "" {
			w.v.noteBlock(w.f.rel, block, "entry %d (%.40q) %s", i, external, what)
			break
		}
		w.known, w.hash, w.last = true, hash, append(w.last[:0], external...)
	}
	if what != "" {
		w.known = false
	}
}

// reverse checks the data blocks of ids/reverse.ids.
func (v *idVerifier) reverse(f *idFile, index []uint64, sums *idSums) error {
	next, known := uint64(0), true
	err := f.scan(v.ctx, 1, 1+f.data, func(block uint64, b []byte, sum error) error {
		var d reverseBlock
		if sum == nil {
			var err error
			if d, err = decodeReverse(b); err != nil {
				sum = damagedBlock(f.rel, block, "%v", err)
			}
		}
		if sum != nil {
			known = false
			return v.note(sum)
		}
		if known && uint64(d.first) != next || index != nil && index[block-1] != uint64(d.first) {
			v.noteBlock(f.rel, block, "it begins with node %d, not where the block before ends or "+
				"where the index says", d.first)
		}
		next, known = uint64(d.first)+uint64(d.n), true
		if next > v.m.Nodes {
			v.noteBlock(f.rel, block, "it ends behind node %d of %d", next-1, v.m.Nodes)
			return nil
		}
		for i := 0; v.full && i < d.n; i++ {
			sums.add(d.external(i), d.first+kv.NodeID(i))
		}
		return nil
	})
	if err == nil && known {
		v.count(f, next)
	}
	return err
}

// compare adds a finding for each range of nodes whose ids differ between the two files.
func (v *idVerifier) compare(forward, reverse *idSums, index []uint64) {
	for b := 0; b < len(forward.sums); b++ {
		start := b
		for b < len(forward.sums) && forward.sums[b] != reverse.sums[b] {
			b++
		}
		if b == start {
			continue
		}
		first, end := forward.first(start), forward.first(b)
		block := sort.Search(len(index), func(i int) bool { return index[i] > first })
		v.noteBlock(ReversePath, uint64(block), "the external ids of nodes %d to %d are not those "+
			"that %s leads back from", first, end-1, ForwardPath)
	}
}
