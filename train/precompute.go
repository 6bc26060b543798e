package train

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/setting"
)

// sumsVersion is the version of the files of sums. Files of another version are made anew.
const sumsVersion = 1

// withSums returns the store that a training with precomputed sums reads (see model.Precomputed).
// It is the same store, but its features are a file in prep/ that has, for each node, the features
// and their sums, as far as the model reads them. The file is made if it does not exist. c gets
// the scale of the features, which are scaled before they are summed. note is told what was done.
func withSums(ctx context.Context, store *layout.Store, dev blockdev.Device, c *Config,
	note func(string)) (*layout.Store, error) {
	pre := model.Of(c).Precomputed()
	if pre.Hops == 0 {
		return store, nil
	}
	features := store.Meta().Features[0]
	s := &summing{store: store, dev: dev, pre: pre, cfg: *c, parts: []kv.RowsMeta{features}}
	s.cfg.Precompute, s.cfg.Precision = false, setting.Float32
	scaled, err := s.scale(ctx)
	if err != nil {
		return nil, err
	}
	note(scaled)
	c.Normalize, c.Scale = s.cfg.Normalize, s.cfg.Scale
	if s.rows, err = rowfile.NewMeta(features.Name, s.path()+".rows", "f32",
		pre.Parts()*features.Dim); err != nil {
		return nil, fmt.Errorf("train: sums of features: %w", err)
	}
	made, err := rowfile.Made(store, s.path())
	if err == nil && !made {
		var how string
		how, err = s.compute(ctx)
		note(how)
	}
	if err != nil {
		return nil, fmt.Errorf("train: compute the sums of features: %w", err)
	}
	return store.WithFeatures(s.rows), nil
}

// summing computes sums of features.
type summing struct {
	store *layout.Store
	dev   blockdev.Device
	pre   model.Precomputed
	cfg   Config
	// parts lists the features, and then the sums of each hop but the last, as far as they have
	// been computed.
	parts []kv.RowsMeta
	rows  kv.RowsMeta // description of the file
}

// scale finds out how the features are scaled.
func (s *summing) scale(ctx context.Context) (note string, err error) {
	in := newInputs(s.store, s.dev, &s.cfg)
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := in.checkLeast(&s.cfg, false); err != nil {
		return "", err
	}
	return in.openRows(ctx, &s.cfg)
}

// spec returns the model that computes one sum.
func (s *summing) spec() *model.Spec {
	return model.Of(&s.cfg).Spec(model.Of(&s.cfg).Dims(setting.FeatureDim(s.store.Meta()),
		1)).Sums()
}

// path returns the path of the file without its extension, relative to the store. It includes a
// hash of all that the sums depend on.
func (s *summing) path() string {
	m, spec := s.store.Meta(), s.spec()
	of, err := json.Marshal([]any{sumsVersion, m.UUID.String(), m.Features[0], s.cfg.Normalize,
		s.cfg.Scale, s.pre.Hops, s.pre.First, spec.Name(), spec.Aggregate, spec.EdgeWeight,
		s.cfg.Limit()})
	if err != nil {
		panic("BUG: encode what sums depend on: " + err.Error())
	}
	return fmt.Sprintf("prep/sums-%x", sha256.Sum256(of))[:len("prep/sums-")+16]
}

// compute computes the sums of all hops and then gives the file its name.
func (s *summing) compute(ctx context.Context) (note string, err error) {
	defer func() {
		for k := 1; k < s.pre.Hops; k++ {
			err = errors.Join(err, rowfile.Remove(s.store, s.hopPath(k)))
		}
	}()
	took, err := rowfile.Make(s.store, s.path(), func() error {
		for k := 1; k <= s.pre.Hops; k++ {
			if err := s.hop(ctx, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the sums of the features were computed in %.1f s and are kept in %s.rows",
		took.Seconds(), s.path()), nil
}

// hopPath returns the path of the sums of hop k, from which the next hop is computed.
func (s *summing) hopPath(k int) string { return fmt.Sprintf("%s.hop%d", s.path(), k) }

// hop computes the sums of hop k from those of the hop before. For the last hop it writes them,
// after the parts before, to the file; for others, alone to a file of their own.
func (s *summing) hop(ctx context.Context, k int) (err error) {
	prefix, first, dim := s.path()+".part", s.pre.First, s.rows.Dim
	if k < s.pre.Hops {
		prefix, first, dim = s.hopPath(k), k, s.parts[0].Dim
	}
	cfg := s.cfg
	if k > 1 { // the features were scaled
		cfg.Normalize, cfg.Scale = "none", nil
	}
	in := newInputs(s.store.WithFeatures(s.parts[k-1]), s.dev, &cfg)
	defer func() { err = errors.Join(err, in.Close()) }()
	if _, err := in.openRows(ctx, &cfg); err != nil {
		return err
	}
	var beside []*rowfile.Reader
	for i := first; i < k; i++ {
		r, err := s.openPart(ctx, i, in)
		if err != nil {
			return err
		}
		beside = append(beside, r)
	}
	w, err := rowfile.NewWriter(s.store.FS(), s.store.Path(prefix), rowfile.Spec{
		UUID: s.store.Meta().UUID, Name: s.rows.Name, Path: prefix + ".rows", DType: "f32",
		Dim: dim, Nodes: s.store.Meta().Nodes})
	if err != nil {
		return err
	}
	if err := s.sum(ctx, in, beside, w); err != nil {
		return errors.Join(err, w.Abort())
	}
	meta, _, err := w.Finish()
	s.parts = append(s.parts, meta)
	return err
}

// openPart opens the rows of a part. They count in the budget of the inputs in, and are
// closed with them.
func (s *summing) openPart(ctx context.Context, i int, in *inputs) (*rowfile.Reader, error) {
	if s.parts[i].Path == in.Rows.Meta().Path {
		return in.Rows, nil
	}
	r, err := rowfile.Open(ctx, s.store, s.dev, s.parts[i], in.Budget)
	if err != nil {
		return nil, err
	}
	in.CloseLater(r)
	if i == 0 && s.cfg.Normalize == setting.NormalizeRow {
		r.NormalizeRows()
	}
	if i == 0 && s.cfg.Scale != nil {
		r.ScaleColumns(s.cfg.Scale)
	}
	return r, nil
}

// sum writes, for each node, the rows of the parts in beside and then the sum of its list's rows.
func (s *summing) sum(ctx context.Context, from *inputs, beside []*rowfile.Reader,
	w *rowfile.Writer) (err error) {
	be, err := cuda.OpenNamed(s.cfg.Backend, backend.Options{Workers: s.cfg.Threads,
		Budget: from.Budget, Device: s.cfg.Device})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, be.Close()) }()
	m, err := model.New(be, s.spec(), false, from.Budget)
	if err != nil {
		return err
	}
	if err := from.openWhole(ctx, &s.cfg, m, nil); err != nil {
		return err
	}
	if err := from.Budget.Reserve("sums of features", exact.HeapBytes); err != nil {
		return err
	}
	defer from.Budget.Release(exact.HeapBytes)
	dim := m.Dims()[0]
	var row, part []float32
	n := &network{be: be, model: m}
	f := n.inference(from, &scratch{in: from, dir: s.path()})
	return f.Run(ctx, nil, func(nodes []sample.NodeID,
		sums []float32) error {
		width := dim * (len(beside) + 1)
		row, part = mem.Resized(row, len(nodes)*width), mem.Resized(part, len(nodes)*dim)
		for i, r := range beside {
			if err := r.Scan(ctx, nodes[0], len(nodes), part); err != nil {
				return err
			}
			putColumns(row, part, width, i*dim, dim)
		}
		putColumns(row, sums, width, len(beside)*dim, dim)
		for i := range nodes {
			if err := w.AddF32(row[i*width : (i+1)*width]); err != nil {
				return err
			}
		}
		return nil
	})
}

// putColumns copies rows of cols columns into rows of width columns, from column first on.
func putColumns(to, from []float32, width, first, cols int) {
	for i := range len(from) / cols {
		copy(to[i*width+first:(i*width)+first+cols], from[i*cols:])
	}
}
