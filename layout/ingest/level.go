package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Into is a store that a level is made for: it numbers the nodes of the level.
type Into interface {
	// Meta returns the metadata of the store.
	Meta() *kv.Meta
	// Enter numbers nodes of sources in the level, and finds what the store cannot take.
	Enter(ctx context.Context, ids *LevelIDs) (*LevelNodes, error)
}

// LevelIDs are the ids of the nodes of sources, in the order of the numbers that they have there.
// One of the two functions is nil.
type LevelIDs struct {
	Count uint64
	Edges uint64 // rows of edges that were read
	Ints  func(fn func(id uint64) error) error
	Texts func(fn func(external []byte) error) error
}

// LevelNodes are the nodes of a level: first those that the store has, in its order, then those
// that are new, in the order of the sources.
type LevelNodes struct {
	Of    []uint32 // number in the level, by number in the sources; nil if they are the same
	Below uint64   // how many of them the store has
	// Set has their numbers in the store.
	Set *roaring.Bitmap
}

// At returns the number of a node in the level.
func (l *LevelNodes) At(number uint64) uint64 { return uint64(l.Of[number]) }

// Inverse returns the node of the sources that has a number in the level. It looks at all.
func (l *LevelNodes) Inverse(node uint64) uint64 {
	for number, of := range l.Of {
		if uint64(of) == node {
			return uint64(number)
		}
	}
	return node
}

// ErrNoLevel says that sources cannot be ingested to a level in one pass: their ids do not fit in
// memory.
var ErrNoLevel = errors.New("the sources cannot be a level at once")

// Open opens the sources that options name. The caller calls Close.
func Open(ctx context.Context, fs vfs.FS, opt *Options) (source.Source, error) {
	return source.Open(ctx, fs, opt.read())
}

// RunLevel ingests edges to opt.Out as a level of a store: nodes have the numbers that the store
// gives them, the dictionary has those that are new, and the catalog the set kv.LevelNodes. The
// source has nothing but edges and ids. It takes 4 bytes of memory for each node of the sources
// beside what an ingest and Enter take.
func RunLevel(ctx context.Context, fs vfs.FS, src source.Source, into Into, opt Options) (*kv.Meta,
	error) {
	p, err := newPipeline(fs, src, opt)
	if err != nil {
		return nil, err
	}
	p.into = into
	return p.run(ctx)
}

// enter numbers the nodes that a scan found as those of a level, and writes the dictionary of the
// new ones.
func (p *pipeline) enter(ctx context.Context, s *scanResult, out *idsResult) (err error) {
	ids := &LevelIDs{Edges: s.Read}
	var set *steps.IDSet
	switch s.Mode {
	case idRanked:
		if set, err = p.loadSet(ctx, s.IDs); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, set.Free()) }()
		ids.Count, ids.Ints, out.Dense = set.Count(), set.Each, set.Dense()
	case idWide:
		ids.Ints = p.eachWide(ctx, s)
		err = ids.Ints(func(uint64) error {
			ids.Count++
			return nil
		})
	case idTable:
		ids.Count = s.IDs[0].Records
		ids.Texts = func(fn func(external []byte) error) error {
			return steps.EachEntry(ctx, p.Sorter("place", 0, p.Memory.Merge), s.IDs,
				func(e extsort.Entry) error { return fn(e.Text) })
		}
	default:
		return ErrNoLevel
	}
	if err != nil {
		return err
	}
	if p.level, err = p.into.Enter(ctx, ids); err != nil {
		return err
	}
	out.Nodes, out.Kind = ids.Count, p.into.Meta().IDs.Kind
	if s.Mode == idWide {
		if err := p.writeWide(out, ids.Ints); err != nil {
			return err
		}
	}
	if s.Mode != idRanked || out.Dense {
		p.DropRuns(s.IDs)
	}
	if out.Level, err = p.keepLevel(); err != nil {
		return err
	}
	if out.Kind == kv.IDsDense || out.Nodes == p.level.Below {
		return nil
	}
	return p.writeDictionary(ctx, out, false, func(add func(external []byte) error) error {
		return p.eachNew(ids, add)
	})
}

// levelRun is where the nodes of a level are kept for a level that is resumed: a run of parts of
// their numbers, and behind them of their set.
type levelRun struct {
	Run     extsort.Run
	Below   uint64
	Renamed bool // they have other numbers than in the sources
}

// levelPart is how many bytes are kept together.
const levelPart = 16 << 10

// keepLevel writes the nodes of the level.
func (p *pipeline) keepLevel() (*levelRun, error) {
	set, err := p.level.Set.ToBytes()
	if err != nil {
		return nil, fmt.Errorf("ingest: encode the nodes of a level: %w", err)
	}
	out := &levelRun{Below: p.level.Below, Renamed: p.level.Of != nil}
	out.Run, err = p.WriteRun("level", func(w *extsort.RunWriter) error {
		for key, all := range [][]byte{mem.BytesOf(p.level.Of), set} {
			for part := range slices.Chunk(all, levelPart) {
				if err := w.Add(extsort.Entry{Key: uint64(key), Text: part}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	p.KeepRuns([]extsort.Run{out.Run})
	return out, err
}

// loadLevel reads what keepLevel wrote, in an ingest that is resumed.
func (p *pipeline) loadLevel(ctx context.Context, of *idsResult) (*LevelNodes, error) {
	l := &LevelNodes{Below: of.Level.Below, Set: roaring.New()}
	if of.Level.Renamed {
		l.Of = make([]uint32, 0, of.Nodes)
	}
	var set []byte
	err := steps.EachEntry(ctx, p.Sorter("level", 0, p.Memory.Merge), []extsort.Run{of.Level.Run},
		func(e extsort.Entry) error {
			if e.Key == 1 {
				set = append(set, e.Text...)
				return nil
			}
			for i := 0; i+4 <= len(e.Text); i += 4 {
				l.Of = append(l.Of, binary.NativeEndian.Uint32(e.Text[i:]))
			}
			return nil
		})
	if err == nil {
		err = l.Set.UnmarshalBinary(set)
	}
	if err == nil && of.Level.Renamed && uint64(len(l.Of)) != of.Nodes {
		err = fmt.Errorf("%d nodes, want %d: %w", len(l.Of), of.Nodes, extsort.ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("ingest: read the nodes of a level: %w", err)
	}
	return l, nil
}

// eachNew calls fn with the ids of the new nodes of a level.
func (p *pipeline) eachNew(ids *LevelIDs, fn func(external []byte) error) error {
	number := uint64(0)
	isNew := func() bool {
		at := number
		if number++; p.level.Of != nil {
			at = p.level.At(at)
		}
		return at >= p.level.Below
	}
	if ids.Texts != nil {
		return ids.Texts(func(external []byte) error {
			if !isNew() {
				return nil
			}
			return fn(external)
		})
	}
	var text []byte
	return ids.Ints(func(id uint64) error {
		if !isNew() {
			return nil
		}
		text = strconv.AppendUint(text[:0], id, 10)
		return fn(text)
	})
}
