package ingest

import (
	"bytes"
	"context"
	"errors"

	"gdb/internal/rng"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
)

// dictionary writes the two files of the id dictionary from the external ids in order of their
// numbers. It sorts them by hash for the forward file and, if nodes are permuted, by node for the
// reverse file. Disk: one or two copies of all ids. Memory: two sorters.
type dictionary struct {
	p        *pipeline
	perm     *rng.Permutation
	seed     uint64
	number   uint64
	forward  *extsort.Strings
	backward *extsort.Strings   // if permuted
	reverse  *ids.ReverseWriter // else
	types    map[string]uint64  // nodes by the type that their ids begin with
}

func newDictionary(p *pipeline, perm *rng.Permutation, seed uint64) (d *dictionary, err error) {
	d = &dictionary{p: p, perm: perm, seed: seed, types: map[string]uint64{}}
	if d.forward, err = extsort.NewStrings(p.sorter("forward", 0, p.memory.strings)); err != nil {
		return nil, err
	}
	if perm != nil {
		d.backward, err = extsort.NewStrings(p.sorter("backward", 0, p.memory.strings))
	} else {
		d.reverse, err = ids.NewReverseWriter(p.fs, p.path("ids/reverse.ids"), p.j.UUID)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// add takes the id of the next number.
func (d *dictionary) add(ctx context.Context, external []byte) error {
	if d.number&0xffff == 0 {
		d.p.progress("number ids", d.number, 0, "ids")
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if len(d.p.info.NodeTypes) > 0 {
		name, _, _ := bytes.Cut(external, []byte(source.TypeSep))
		d.types[string(name)]++
	}
	node := d.number
	d.number++
	var err error
	if d.perm != nil {
		node = d.perm.At(node)
		err = d.backward.Add(extsort.Entry{Key: node, Text: external})
	} else {
		err = d.reverse.Add(external)
	}
	if err != nil {
		return err
	}
	return d.forward.Add(extsort.Entry{Key: d.p.hash(d.seed, external), Text: external, Aux: node})
}

// finish writes what is left. With joins, the run that edges and rows are joined with is written
// beside the forward file.
func (d *dictionary) finish(ctx context.Context, out *idsResult, joins bool) error {
	reverse, err := d.finishReverse(ctx)
	if err != nil {
		return err
	}
	forward, err := d.finishForward(ctx, out, joins)
	if err != nil {
		return err
	}
	forward.Path, reverse.Path = "ids/forward.ids", "ids/reverse.ids"
	out.Files = append(out.Files, forward, reverse)
	for _, name := range d.p.info.NodeTypes {
		out.Types = append(out.Types, kv.NodeTypeMeta{Name: name, Nodes: d.types[name]})
	}
	return nil
}

func (d *dictionary) finishReverse(ctx context.Context) (kv.FileMeta, error) {
	if d.perm == nil {
		meta, err := d.reverse.Finish()
		d.reverse = nil
		return meta, err
	}
	runs, err := d.backward.Finish()
	if err != nil {
		return kv.FileMeta{}, err
	}
	w, err := ids.NewReverseWriter(d.p.fs, d.p.path("ids/reverse.ids"), d.p.j.UUID)
	if err != nil {
		return kv.FileMeta{}, err
	}
	err = d.p.eachEntry(ctx, d.p.sorter("backward", 0, d.p.memory.merge), runs,
		func(e extsort.Entry) error { return w.Add(e.Text) })
	if err != nil {
		return kv.FileMeta{}, errors.Join(err, w.Abort())
	}
	return w.Finish()
}

func (d *dictionary) finishForward(ctx context.Context, out *idsResult, joins bool) (
	kv.FileMeta, error) {
	runs, err := d.forward.Finish()
	if err != nil {
		return kv.FileMeta{}, err
	}
	w, err := ids.NewForwardWriter(d.p.fs, d.p.path("ids/forward.ids"), d.p.j.UUID, d.seed)
	if err != nil {
		return kv.FileMeta{}, err
	}
	add := func(e extsort.Entry) error { return w.Add(e.Key, e.Text, kv.NodeID(e.Aux)) }
	opt := d.p.sorter("forward", 0, d.p.memory.merge)
	if joins {
		err = d.writeBoth(ctx, opt, runs, out, add)
	} else {
		err = d.p.eachEntry(ctx, opt, runs, add)
	}
	if err != nil {
		return kv.FileMeta{}, errors.Join(err, w.Abort())
	}
	return w.Finish()
}

func (d *dictionary) writeBoth(ctx context.Context, opt extsort.Options, runs []extsort.Run,
	out *idsResult, add func(extsort.Entry) error) error {
	joined, err := d.p.newRun("dict")
	if err != nil {
		return err
	}
	err = d.p.eachEntry(ctx, opt, runs, func(e extsort.Entry) error {
		if err := add(e); err != nil {
			return err
		}
		return joined.Add(e)
	})
	run, err2 := joined.Finish()
	out.Dict = []extsort.Run{run}
	return errors.Join(err, err2)
}

// close frees the sorters and closes what was not finished.
func (d *dictionary) close() error {
	errs := []error{d.forward.Abort()}
	if d.backward != nil {
		errs = append(errs, d.backward.Abort())
	}
	if d.reverse != nil {
		errs = append(errs, d.reverse.Abort())
	}
	return errors.Join(errs...)
}
