package layout

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/message"
	"gdb/kv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrLevels is wrapped by the error of what does not read the levels of a store.
var ErrLevels = errors.New("the store was appended to")

// LevelsDir is the folder of a store that has its levels, and bases that compactions wrote.
const LevelsDir = "levels"

// Level is what a commit added to a store.
type Level struct {
	*Store              // by its own numbers of nodes
	Of     kv.LevelMeta // as the whole store tells of it
	First  uint64       // the first node that it added, by the numbers of the whole store
	Held   *Held        // what the level has, if it is in memory; else nil
}

// Nodes returns the level's nodes: number i of the set is the node that is node i of the level.
func (l *Level) Nodes(ctx context.Context) (*roaring.Bitmap, error) {
	if l.Held != nil {
		return roaring.BitmapOf(l.Held.Of...), nil
	}
	set, err := l.catalog.Set(ctx, kv.LevelNodes)
	if err != nil {
		return nil, err
	}
	// Of a level that replaces rows, all nodes are old ones, with rows.
	below := l.meta.Nodes - l.Of.Nodes
	last := uint64(0)
	if !set.IsEmpty() {
		last = uint64(set.Maximum()) + 1
	}
	if set.GetCardinality() != l.meta.Nodes || last > l.First+l.Of.Nodes ||
		set.Rank(uint32(max(l.First, 1)-1)) != below && l.First > 0 {
		return nil, &CorruptionError{Path: l.Of.Path + "/" + CatalogName, Block: -1,
			What: fmt.Sprintf("its set of nodes does not fit %d nodes below %d and %d from there",
				below, l.First, l.Of.Nodes)}
	}
	return set, nil
}

// openLevels opens the base and the levels that the catalog lists.
func (s *Store) openLevels(ctx context.Context) (err error) {
	part := func(path string) (*Store, error) {
		p, err := open(ctx, s.fs, s.Path(path))
		if err != nil {
			return nil, fmt.Errorf("layout: open %s of %s: %w", path, s.dir, err)
		}
		return p, nil
	}
	if s.meta.Base == "" {
		s.base = &Store{fs: s.fs, dir: s.dir, meta: s.meta.BaseMeta(), catalog: s.catalog}
	} else if s.base, err = part(s.meta.Base); err != nil {
		return err
	}
	first := s.base.meta.Nodes
	for _, of := range s.meta.Levels {
		l := &Level{Of: of, First: first}
		if l.Store, err = part(of.Path); err != nil {
			return err
		}
		m, added := l.meta, of.Nodes
		if of.Rows != "" {
			added = of.RowNodes
		}
		if m.UUID != of.UUID || m.Nodes-m.Below != added || m.Edges != of.Edges {
			return fmt.Errorf("layout: open %s: %w", s.dir, &CorruptionError{
				Path: of.Path + "/" + CatalogName, Block: -1,
				What: "it is not the level that the store lists"})
		}
		first += of.Nodes
		s.levels = append(s.levels, l)
	}
	if first != s.meta.Nodes {
		return fmt.Errorf("layout: open %s: %w", s.dir, &CorruptionError{Path: CatalogName,
			Block: -1, What: fmt.Sprintf("base and levels have %d nodes of %d", first,
				s.meta.Nodes)})
	}
	return nil
}

// Open is OpenLive for callers that do not read levels: the error wraps ErrLevels if there are any.
func Open(ctx context.Context, fs vfs.FS, dir string) (*Store, error) {
	s, err := OpenLive(ctx, fs, dir)
	if err == nil && len(s.levels) > 0 {
		return nil, s.WithoutLevels()
	}
	return s, err
}

// WithoutLevels fails if the store has levels: it is for callers that do not read them.
func (s *Store) WithoutLevels() error {
	if len(s.levels) == 0 {
		return nil
	}
	return s.errLevels("this command does not read")
}

// Levels returns what commits added, the oldest first; none of most stores.
func (s *Store) Levels() []*Level { return s.levels }

// Lists returns the levels that have lists and nodes: not those that replace rows.
func (s *Store) Lists() (some []*Level) {
	for _, l := range s.levels {
		if l.Of.Rows == "" {
			some = append(some, l)
		}
	}
	return some
}

// Base returns the store that the levels add to: s itself where nothing was ever appended.
func (s *Store) Base() *Store {
	if s.base == nil {
		return s
	}
	return s.base
}

func (s *Store) errLevels(what string) error {
	return fmt.Errorf("layout: %s: %w: %s its %d levels; %s compact %s merges them", s.dir,
		ErrLevels, what, len(s.levels), message.Program, s.dir)
}

// OfColumns returns the store that has a column at a path: the base for columns of nodes, of which
// no level has any. Columns of edges are in base and levels, and are not read of the base alone.
func (s *Store) OfColumns(path string) *Store {
	if len(s.levels) == 0 || s.meta.IsEdgeColumn(path) || s.meta.Nodes != s.Base().meta.Nodes {
		return s
	}
	return s.Base()
}
