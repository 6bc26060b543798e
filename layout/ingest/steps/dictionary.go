package steps

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
)

// Order gives nodes in another order than that of their numbers.
type Order interface {
	// At returns the node of a number, and Inverse the number of a node.
	At(number uint64) uint64
	Inverse(node uint64) uint64
}

// DictionaryOptions say how ids become nodes.
type DictionaryOptions struct {
	Perm Order  // of nodes; nil if they keep the order of their numbers
	Seed uint64 // of the hash
	Hash func(seed uint64, external []byte) uint64
	// Types are the node types that ids begin with; none in most graphs. Integer says of which the
	// files have no ids: of those that have, the ids follow each other in this order of types. It
	// is empty if the files have all.
	Types   []string
	Integer []bool
}

// DictionaryResult is what a dictionary has come to.
type DictionaryResult struct {
	Files []kv.FileMeta
	Types []kv.NodeTypeMeta
	Joins []extsort.Run // (key, text, node) by key, if it was asked for
}

// DictionaryWriter writes the two files of the id dictionary from the external ids in order of
// their numbers. It sorts them by hash for the forward file and, if nodes are permuted, by node for
// the reverse file. Disk: one or two copies of all ids. Memory: two sorters.
type DictionaryWriter struct {
	work     *Work
	opt      DictionaryOptions
	number   uint64
	forward  *extsort.Strings
	backward *extsort.Strings   // if permuted
	reverse  *ids.ReverseWriter // else
	types    []uint64           // nodes by the type that their ids begin with
	files    uint64             // ids in the files
}

// NewDictionary begins a dictionary.
func NewDictionary(work *Work, opt DictionaryOptions) (d *DictionaryWriter, err error) {
	d = &DictionaryWriter{work: work, opt: opt, types: make([]uint64, len(opt.Types))}
	if d.forward, err = d.sorter("forward"); err != nil {
		return nil, err
	}
	if opt.Perm != nil {
		d.backward, err = d.sorter("backward")
	} else {
		d.reverse, err = ids.NewReverseWriter(work.FS, work.Path("ids/reverse.ids"),
			work.Journal.UUID)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *DictionaryWriter) sorter(name string) (*extsort.Strings, error) {
	return extsort.NewStrings(d.work.Sorter(name, 0, d.work.Memory.Strings))
}

// Add takes the id of the next number.
func (d *DictionaryWriter) Add(ctx context.Context, external []byte) error {
	if d.number&0xffff == 0 {
		d.work.Progress("number ids", d.number, 0, "ids")
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	typ := d.typeOf(external)
	if typ >= 0 {
		d.types[typ]++
	}
	node := d.number
	d.number++
	var err error
	switch {
	case d.isInteger(typ):
	case d.opt.Perm != nil:
		node = d.opt.Perm.At(node)
		d.files++
		err = d.backward.Add(extsort.Entry{Key: node, Text: external})
	default:
		d.files++
		err = d.reverse.Add(external)
	}
	if err != nil {
		return err
	}
	return d.forward.Add(extsort.Entry{Key: d.opt.Hash(d.opt.Seed, external), Text: external,
		Aux: node})
}

// typeOf returns the type that an id begins with, or -1.
func (d *DictionaryWriter) typeOf(external []byte) int {
	if len(d.opt.Types) == 0 {
		return -1
	}
	name, _, _ := bytes.Cut(external, []byte(source.TypeSep))
	return slices.IndexFunc(d.opt.Types, func(t string) bool { return t == string(name) })
}

// isInteger reports whether the files have no ids of a type.
func (d *DictionaryWriter) isInteger(typ int) bool {
	return typ >= 0 && len(d.opt.Integer) > 0 && d.opt.Integer[typ]
}

// Finish writes what is left. With joins, the run that edges and rows are joined with is written
// beside the forward file.
func (d *DictionaryWriter) Finish(ctx context.Context, joins bool) (*DictionaryResult, error) {
	out := &DictionaryResult{}
	if d.files > 0 {
		reverse, err := d.finishReverse(ctx)
		if err != nil {
			return nil, err
		}
		reverse.Path = "ids/reverse.ids"
		out.Files = append(out.Files, reverse)
	}
	forward, err := d.finishForward(ctx, out, joins)
	if err != nil {
		return nil, err
	}
	if d.files > 0 {
		forward.Path = "ids/forward.ids"
		out.Files = append(out.Files, forward)
	}
	for i, name := range d.opt.Types {
		out.Types = append(out.Types, kv.NodeTypeMeta{Name: name, Nodes: d.types[i]})
	}
	return out, nil
}

func (d *DictionaryWriter) finishReverse(ctx context.Context) (kv.FileMeta, error) {
	if d.opt.Perm == nil {
		meta, err := d.reverse.Finish()
		d.reverse = nil
		return meta, err
	}
	runs, err := d.backward.Finish()
	if err != nil {
		return kv.FileMeta{}, err
	}
	w, err := ids.NewReverseWriter(d.work.FS, d.work.Path("ids/reverse.ids"), d.work.Journal.UUID)
	if err != nil {
		return kv.FileMeta{}, err
	}
	err = EachEntry(ctx, d.work.Sorter("backward", 0, d.work.Memory.Merge), runs,
		func(e extsort.Entry) error { return w.Add(e.Text) })
	if err != nil {
		return kv.FileMeta{}, errors.Join(err, w.Abort())
	}
	return w.Finish()
}

func (d *DictionaryWriter) finishForward(ctx context.Context, out *DictionaryResult, joins bool) (
	kv.FileMeta, error) {
	runs, err := d.forward.Finish()
	if err != nil {
		return kv.FileMeta{}, err
	}
	w, err := ids.NewForwardWriter(d.work.FS, d.work.Path("ids/forward.ids"),
		d.work.Journal.UUID, d.opt.Seed)
	if err != nil {
		return kv.FileMeta{}, err
	}
	above := make([]uint64, len(d.opt.Types)) // nodes below those of a type, that files lack
	for i := 1; i < len(above); i++ {
		if above[i] = above[i-1]; d.isInteger(i - 1) {
			above[i] += d.types[i-1]
		}
	}
	add := func(e extsort.Entry) error {
		if len(d.opt.Integer) == 0 {
			return w.Add(e.Key, e.Text, kv.NodeID(e.Aux))
		}
		node, typ := e.Aux, d.typeOf(e.Text)
		if d.isInteger(typ) {
			return nil
		}
		if typ >= 0 {
			node -= above[typ]
		}
		return w.Add(e.Key, e.Text, kv.NodeID(node))
	}
	opt := d.work.Sorter("forward", 0, d.work.Memory.Merge)
	if joins {
		var run extsort.Run
		run, err = d.work.WriteRun("dict", func(joined *extsort.RunWriter) error {
			return EachEntry(ctx, opt, runs, func(e extsort.Entry) error {
				if err := add(e); err != nil {
					return err
				}
				return joined.Add(e)
			})
		})
		out.Joins = []extsort.Run{run}
	} else {
		err = EachEntry(ctx, opt, runs, add)
	}
	if err != nil || d.files == 0 {
		return kv.FileMeta{}, errors.Join(err, w.Abort())
	}
	return w.Finish()
}

// Close frees the sorters and closes what was not finished.
func (d *DictionaryWriter) Close() error {
	errs := []error{d.forward.Abort()}
	if d.backward != nil {
		errs = append(errs, d.backward.Abort())
	}
	if d.reverse != nil {
		errs = append(errs, d.reverse.Abort())
	}
	return errors.Join(errs...)
}
