package ingest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Again is a store that is written anew, with its nodes in another order: a source whose ids are
// the nodes of that store, as row numbers. Its At returns the new node of a node. All else of the
// new store is as it was: external ids, what edges carry, features, labels and splits. Edges has
// the lists, and SplitEdges the splits of edges. Or Edges has each edge once, as a source has, also
// the edges of all splits that Info lists; the options say how the store keeps them then.
type Again interface {
	source.Source
	steps.Order
	// Meta returns the metadata of the store.
	Meta() *kv.Meta
	// Parts returns the partitions that nodes are in the order of, without their edges; nil if they
	// keep their order, with the ids that they have.
	Parts() []kv.Partition
	// EdgeCut is kept in the metadata.
	EdgeCut() float64
	// Sum identifies the store and the order.
	Sum() string
	// Names calls fn with the external ids of all nodes of the store, in its order.
	Names(ctx context.Context, fn func(external []byte) error) error
	// SplitEdges calls fn with the edges of a split of the edges, some at a time.
	SplitEdges(ctx context.Context, split string, fn func(e edgefile.Edges) error) error
}

// RunAgain writes a store anew, as opt.Partitioner has put its nodes in order. It is an ingest: it
// takes the same memory, and can be resumed. The order must be that of the run before then.
func RunAgain(ctx context.Context, fs vfs.FS, src Again, opt Options) (*kv.Meta, error) {
	p, err := newPipeline(fs, src, opt)
	if err != nil {
		return nil, err
	}
	p.again, p.hashSeed = src, src.Meta().IDs.HashSeed
	return p.run(ctx)
}

// orderSum identifies the order of nodes of a store that is written anew; "" for other sources.
func (p *pipeline) orderSum() string {
	if p.again == nil {
		return ""
	}
	return p.again.Sum()
}

// numberAgain writes the dictionary of a store that is written anew.
func (p *pipeline) numberAgain(ctx context.Context, out *idsResult) error {
	if out.Kind = p.again.Meta().IDs.Kind; out.Kind == kv.IDsDense {
		if p.again.Parts() == nil {
			return nil
		}
		out.Kind = kv.IDsInteger
	}
	return p.writeDictionary(ctx, out, false, func(add func(external []byte) error) error {
		return p.again.Names(ctx, add)
	})
}

// inherit makes metadata that do not depend on the order of nodes those of the store that is
// written anew.
func inherit(m *kv.Meta, from Again) {
	was, cut := from.Meta(), from.EdgeCut()
	m.Undirected, m.SplitColumn = was.Undirected, was.SplitColumn
	if from.Parts() != nil {
		now := m.Stats
		m.Stats, m.EdgeCut = was.Stats, &cut
		if len(was.Levels) > 0 || was.Snapshot > 0 { // the catalog's degrees are of the base alone
			m.Stats.InHist, m.Stats.InMax = now.InHist, now.InMax
			m.Stats.OutHist, m.Stats.OutMax = now.OutHist, now.OutMax
		}
		return
	}
	if b, ok := from.(belower); ok {
		m.Below = b.Below()
	}
}

// belower is a store that is made as a level: its first nodes, as many as Below says, are nodes
// of the store that it is a level of, and have no rows of features and no names.
type belower interface{ Below() uint64 }

// rowFirsts returns the first node of each section of rows of features, if these have sections.
func (p *pipeline) rowFirsts() []uint64 {
	if b, ok := p.again.(belower); ok && b.Below() > 0 {
		return []uint64{0, b.Below()}
	}
	return p.firsts
}

// orderFlags are the flags that say how nodes are put in order.
var orderFlags = []string{"--partitioner", "--partitions", "--restream", "--cluster"}

// orderedSource returns what a store was made from, with how its nodes are put in order now.
func (o *Options) orderedSource(was kv.SourceMeta) kv.SourceMeta {
	was.Args = slices.DeleteFunc(slices.Clone(was.Args), func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return slices.Contains(orderFlags, flag)
	})
	values := []string{o.Partitioner, strconv.Itoa(o.Partitions), strconv.Itoa(o.Restream)}
	for i, value := range values {
		if value != "0" && value != "" {
			was.Args = append(was.Args, orderFlags[i]+"="+value)
		}
	}
	if o.Cluster {
		was.Args = append(was.Args, "--cluster")
	}
	return was
}

// edgeSplitsAgain writes the splits of the edges of a store that is written anew, in the order that
// their files have.
func (p *pipeline) edgeSplitsAgain(ctx context.Context, r *results) error {
	r.divided.Splits = p.again.Meta().EdgeSplits
	for _, s := range r.divided.Splits {
		f, err := steps.Do(ctx, p.Work, "edge-split "+s.Name,
			func(ctx context.Context, out *kv.FileMeta) (err error) {
				*out, err = p.edgeSplitAgain(ctx, s.Name)
				return err
			})
		if err != nil {
			return err
		}
		r.divided.Files = append(r.divided.Files, *f)
	}
	return nil
}

// edgeSplitAgain sorts the edges of a split by destination, source and type, and writes them.
func (p *pipeline) edgeSplitAgain(ctx context.Context, name string) (m kv.FileMeta, err error) {
	const width = 2
	opt := p.Sorter("split", width, p.Memory.Sort)
	runs, err := extsort.SortWords(opt, func(s *extsort.Words) error {
		var words []uint64
		return p.again.SplitEdges(ctx, name, func(e edgefile.Edges) error {
			words = words[:0]
			for i, src := range e.Src {
				rel := uint64(0)
				if e.Rel != nil {
					rel = uint64(e.Rel[i])
				}
				dst := p.again.At(uint64(e.Dst[i]))
				words = append(words, dst<<32|p.again.At(uint64(src)), rel)
			}
			return s.Add(words)
		})
	})
	if err != nil {
		return m, err
	}
	file, err := layout.CreateFile(p.FS, p.Path(edgefile.Path(name)))
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			_ = file.Abort() // the first error says more
		}
	}()
	was := p.again.Meta()
	w, err := edgefile.NewWriter(file, edgefile.Spec{Kind: edgefile.Kind(name),
		UUID: p.Journal.UUID, Nodes: was.Nodes, Types: len(was.EdgeTypes)}, nil)
	if err != nil {
		return m, err
	}
	opt.Memory = p.Memory.Merge
	err = extsort.Merge(ctx, opt, runs, func(words []uint64) error {
		for i := 0; i < len(words); i += width {
			err := w.Add(uint32(words[i]), uint32(words[i]>>32), uint16(words[i+1]))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		return m, fmt.Errorf("ingest: edges of %s: %w", name, err)
	}
	if m, err = file.Finish(edgefile.Path(name), edgefile.Kind(name)); err == nil {
		p.KeepFiles(m)
	}
	return m, err
}
