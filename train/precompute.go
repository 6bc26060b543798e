package train

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gdb/blockdev"
	"gdb/internal/atomicfile"
	"gdb/internal/lockfile"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/train/backend"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/runs"

	"github.com/cockroachdb/errors/oserror"
)

// sumsVersion is that of the files of sums: those of another one are made anew.
const sumsVersion = 1

// withSums returns the store that a training with sums computed before reads (see model.Ahead): the
// same, but its features are a file in prep/ that has for each node its features and their sums, as
// far as the model reads them. The file is made if it is not there. c gets the scale of the
// features, which are scaled before they are summed up. notes say what was done; some may be empty.
func withSums(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c *Config) (of *layout.Store, notes []string, err error) {
	ahead := c.Ahead()
	if ahead.Hops == 0 {
		return store, nil, nil
	}
	s := &summing{store: store, dev: dev, ahead: ahead, cfg: *c}
	s.cfg.Precompute = false
	defer func() { err = errors.Join(err, s.close()) }()
	scaled, err := s.openFeatures(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.Normalize, c.Scale = s.cfg.Normalize, s.cfg.Scale
	features := store.Meta().Features[0]
	if s.rows, err = rowfile.NewMeta(features.Name, s.path()+".rows", "f32",
		ahead.Parts()*features.Dim); err != nil {
		return nil, nil, fmt.Errorf("train: sums of features: %w", err)
	}
	made := ""
	_, err = store.FS().Stat(store.Path(s.rows.Path))
	if oserror.IsNotExist(err) {
		made, err = s.make(ctx)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("train: compute the sums of features: %w", err)
	}
	return store.WithFeatures(s.rows), []string{scaled, made}, nil
}

// summing computes sums of features.
type summing struct {
	store *layout.Store
	dev   blockdev.Device
	ahead model.Ahead
	cfg   Config
	in    *inputs
	rows  kv.RowsMeta // of the file
}

// openFeatures opens the features, to see how they are scaled.
func (s *summing) openFeatures(ctx context.Context) (note string, err error) {
	s.in = newInputs(s.store, s.dev, &s.cfg)
	if err := s.in.checkLeast(&s.cfg, false); err != nil {
		return "", err
	}
	return s.in.openRows(ctx, &s.cfg)
}

func (s *summing) close() error {
	if s.in == nil {
		return nil
	}
	in := s.in
	s.in = nil
	return in.Close()
}

// spec is the model that computes a sum.
func (s *summing) spec() *model.Spec {
	return s.cfg.Spec(s.cfg.Dims(runs.FeatureDim(s.store.Meta()), 1)).Sums()
}

// path is that of the file without its extension, relative to the store. It has all that the sums
// depend on.
func (s *summing) path() string {
	m, spec := s.store.Meta(), s.spec()
	of, err := json.Marshal([]any{sumsVersion, m.UUID.String(), m.Features[0], s.cfg.Normalize,
		s.cfg.Scale, s.ahead.Hops, s.ahead.First, spec.Name(), spec.Aggregate, spec.EdgeWeight,
		s.cfg.Limit()})
	if err != nil {
		panic("BUG: encode what sums depend on: " + err.Error())
	}
	return fmt.Sprintf("prep/sums-%x", sha256.Sum256(of))[:len("prep/sums-")+16]
}

// make computes the sums of all hops and gives the file its name.
func (s *summing) make(ctx context.Context) (note string, err error) {
	begun, fs, prefix := time.Now(), s.store.FS(), s.store.Path(s.path())
	if err := fs.MkdirAll(s.store.Path("prep"), 0o755); err != nil {
		return "", err
	}
	lock, err := lockfile.Take(fs, prefix+".lock")
	if errors.Is(err, lockfile.ErrHeld) {
		return "", fmt.Errorf("another training computes the same sums now: wait until it has "+
			"begun its first epoch (%w)", err)
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, fs.Remove(prefix+".lock"), lock.Close()) }()
	var parts []*inputs // the sums so far, one hop after the other, beginning with the features
	defer func() {
		for _, p := range parts {
			err = errors.Join(err, p.Close())
		}
		for k := 1; k < s.ahead.Hops; k++ {
			err = errors.Join(err, removeRows(s.store, s.hopPath(k)))
		}
	}()
	for k := 1; k <= s.ahead.Hops; k++ {
		if err := s.hop(ctx, k, &parts); err != nil {
			return "", err
		}
	}
	for _, ext := range []string{".crc", ".rows"} { // which is looked for is there last
		if err := fs.Rename(prefix+".part"+ext, prefix+ext); err != nil {
			return "", err
		}
	}
	if err := atomicfile.SyncDir(fs, s.store.Path("prep")); err != nil {
		return "", err
	}
	return fmt.Sprintf("the sums of the features were computed in %.1f s and are kept in %s.rows",
		time.Since(begun).Seconds(), s.path()), nil
}

// hopPath is where the sums of a hop are that others are computed from.
func (s *summing) hopPath(k int) string { return fmt.Sprintf("%s.hop%d", s.path(), k) }

// hop computes the sums of hop k from those of the hop before, which are the last of parts, and
// appends them; those of the last hop go to the file.
func (s *summing) hop(ctx context.Context, k int, parts *[]*inputs) (err error) {
	if k == 1 {
		*parts = append(*parts, s.in)
		s.in = nil
	}
	from := (*parts)[k-1]
	meta := s.rows
	meta.Path = s.path() + ".part.rows"
	first := s.ahead.First
	if k < s.ahead.Hops {
		dim := from.Rows.Meta().Dim
		if meta, err = rowfile.NewMeta(s.rows.Name, s.hopPath(k)+".rows", "f32", dim); err != nil {
			return err
		}
		first = k
	}
	w, err := rowfile.NewWriter(s.store.FS(), s.store.Path(meta.Path[:len(meta.Path)-len(".rows")]),
		rowfile.Spec{UUID: s.store.Meta().UUID, Name: meta.Name, Path: meta.Path, DType: "f32",
			Dim: meta.Dim, Nodes: s.store.Meta().Nodes})
	if err != nil {
		return err
	}
	if err := s.sum(ctx, from, (*parts)[min(first, k):k], w); err != nil {
		return errors.Join(err, w.Abort())
	}
	if _, _, err := w.Finish(); err != nil || k == s.ahead.Hops {
		return err
	}
	next := newInputs(s.store.WithFeatures(meta), s.dev, &s.cfg)
	next.NormalizeRows = false
	*parts = append(*parts, next)
	return next.OpenRows(ctx)
}

// sum writes rows of the parts of nodes and, behind them, the sums of rows of one.
func (s *summing) sum(ctx context.Context, from *inputs, beside []*inputs,
	w *rowfile.Writer) (err error) {
	be, err := backend.Open(s.cfg.Backend, backend.Options{Workers: s.cfg.Threads,
		Budget: from.Budget})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, be.Close()) }()
	m, err := model.New(be, s.spec(), false, from.Budget)
	if err != nil {
		return err
	}
	t := &trained{cfg: s.cfg, in: from, be: be, model: m}
	if err := t.openData(ctx); err != nil {
		return err
	}
	if err := from.Budget.Reserve("sums of features", exact.HeapBytes); err != nil {
		return err
	}
	defer from.Budget.Release(exact.HeapBytes)
	dim := m.Dims()[0]
	var row, part []float32
	return from.inference(be, m, s.path()).Run(ctx, nil, func(nodes []sample.NodeID,
		sums []float32) error {
		width := dim * (len(beside) + 1)
		row, part = mem.Resized(row, len(nodes)*width), mem.Resized(part, len(nodes)*dim)
		for i, in := range beside {
			if err := in.Rows.Scan(ctx, nodes[0], len(nodes), part); err != nil {
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

// putColumns copies rows of so many columns into wider ones, from column first on.
func putColumns(to, from []float32, width, first, cols int) {
	for i := range len(from) / cols {
		copy(to[i*width+first:(i*width)+first+cols], from[i*cols:])
	}
}

// removeRows removes a file of rows, if it is there.
func removeRows(s *layout.Store, path string) error {
	var all error
	for _, ext := range []string{".rows", ".crc"} {
		if err := s.FS().Remove(s.Path(path + ext)); err != nil && !oserror.IsNotExist(err) {
			all = errors.Join(all, err)
		}
	}
	return all
}
