package splits

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/input"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Directions of the edges of a group, as bits.
const (
	asGiven  = 1 << iota // the edge as it is in the source
	reversed             // the reverse of an edge of the source
)

// EdgeOptions configure an EdgeDivider.
type EdgeOptions struct {
	FS   vfs.FS
	Path func(rel string) string // path of a file of the store, while it is written
	UUID kv.UUID
	// Names are the splits. Records have their numbers, counted from 1 in this order.
	Names []string
	Nodes uint64
	Types int
	// EdgeSplit is how edges were put in splits. Without a draw, records have the number of theirs.
	EdgeSplit
}

// EdgeDivider takes the edges of an ingest in the order of the in-lists, in groups: a group is an
// edge of the lists, with its duplicates that were dropped. It writes each edge of the source once,
// as the source has it, to the file of its split, and never its reverse. If duplicates are dropped
// and the source has both directions of an undirected edge, it is written from the lower node to
// the higher.
type EdgeDivider struct {
	opt      EdgeOptions
	splits   []*split // by number minus 1
	of       []*split // by place in edgefile.Splits
	held     bool     // whether a group is open
	number   uint16   // split of the group in its records
	ways     int      // directions of its records in that split
	current  *split
	src, dst uint32
	typ      uint16
	// repeated counts edges that are twice in one split, and shared those that are in an earlier
	// split too, where duplicates are kept.
	repeated, shared uint64
	loops            uint64 // edges written from a node to itself
}

// split is a file of edges that is written.
type split struct {
	name string
	file *layout.FileWriter
	w    *edgefile.Writer
}

// EdgeResult is what an EdgeDivider wrote.
type EdgeResult struct {
	Files    []kv.FileMeta
	Splits   []kv.EdgeSplitMeta
	Repeated uint64 // edges that are more than once in one split
	Shared   uint64 // edges that are in an earlier split too
	Loops    uint64 // edges from a node to itself
}

// NewEdgeDivider creates the files. The caller calls Finish or Abort.
func NewEdgeDivider(opt EdgeOptions) (*EdgeDivider, error) {
	d := &EdgeDivider{opt: opt, of: make([]*split, len(edgefile.Splits))}
	for _, name := range opt.Names {
		s := &split{name: name}
		d.splits = append(d.splits, s)
		d.of[slices.Index(edgefile.Splits, name)] = s
		spec := edgefile.Spec{Kind: edgefile.Kind(name), UUID: opt.UUID, Nodes: opt.Nodes,
			Types: opt.Types}
		var err error
		if s.file, err = layout.CreateFile(opt.FS, opt.Path(edgefile.Path(name))); err == nil {
			s.w, err = edgefile.NewWriter(s.file, spec, nil)
		}
		if err != nil {
			return nil, errors.Join(err, d.Abort())
		}
	}
	return d, nil
}

// Begin ends the open group and begins one with a record of split number n, from 1, or 0 if the
// split is drawn.
func (d *EdgeDivider) Begin(n uint16, isReversed bool) error {
	if err := d.end(); err != nil {
		return err
	}
	d.held, d.number, d.ways, d.current = true, n, way(isReversed), nil
	return nil
}

// Again adds a duplicate to the open group.
func (d *EdgeDivider) Again(n uint16, isReversed bool) {
	if n == d.number {
		d.ways |= way(isReversed)
	}
}

// Repeat counts a record that is kept although it equals the one before, which is in split number
// before.
func (d *EdgeDivider) Repeat(before, n uint16, isReversed bool) {
	switch {
	case isReversed:
	case before == n:
		d.repeated++
	default:
		d.shared++
	}
}

func way(isReversed bool) int {
	if isReversed {
		return reversed
	}
	return asGiven
}

// Place sets the edge of the open group, and returns whether the lists have it, because it is in
// train.
func (d *EdgeDivider) Place(src, dst uint32, typ uint16) (listed bool) {
	d.src, d.dst, d.typ = src, dst, typ
	if d.opt.Draw != nil {
		d.current = d.of[d.opt.Draw.split(src, dst)]
	} else {
		d.current = d.splits[d.number-1]
	}
	return d.current == d.of[train]
}

// end writes the edge of the open group.
func (d *EdgeDivider) end() error {
	if !d.held {
		return nil
	}
	d.held = false
	if d.ways == reversed || d.ways == asGiven|reversed && d.src > d.dst {
		return nil
	}
	if d.src == d.dst {
		d.loops++
	}
	return d.current.w.Add(d.src, d.dst, d.typ)
}

// Finish ends the last group and the files.
func (d *EdgeDivider) Finish() (r EdgeResult, err error) {
	if err := d.end(); err != nil {
		return r, err
	}
	r.Repeated, r.Shared, r.Loops = d.repeated, d.shared, d.loops
	for _, s := range d.splits {
		n := s.w.Count()
		if n == 0 && d.opt.Draw != nil {
			return r, input.Usage("--edge-split: %s gets none of so few edges by chance: give "+
				"it a larger share, or take another --seed", s.name)
		}
		if n == 0 && d.opt.Times != nil {
			return r, input.Usage("--edge-split: no edge has a time at which it is in %s: give "+
				"other times", s.name)
		}
		if err := s.w.Finish(); err != nil {
			return r, err
		}
		m, err := s.file.Finish(edgefile.Path(s.name), edgefile.Kind(s.name))
		if err != nil {
			return r, err
		}
		r.Files = append(r.Files, m)
		r.Splits = append(r.Splits, kv.EdgeSplitMeta{Name: s.name, Count: n})
	}
	return r, nil
}

// Abort closes the files that Finish did not.
func (d *EdgeDivider) Abort() error {
	var errs []error
	for _, s := range d.splits {
		if s.file != nil {
			errs = append(errs, s.file.Abort())
		}
	}
	return errors.Join(errs...)
}

// EdgeNotes returns what a user should know about splits of edges.
func EdgeNotes(r *EdgeResult) (notes []string) {
	if r.Repeated > 0 {
		notes = append(notes, fmt.Sprintf("%d edges stand more than once in one split: --dedup "+
			"drops them", r.Repeated))
	}
	if r.Shared > 0 {
		notes = append(notes, fmt.Sprintf("%d edges of val or test are in an earlier split too: "+
			"--dedup leaves them in the first", r.Shared))
	}
	if r.Loops > 0 {
		notes = append(notes, fmt.Sprintf("%d edges go from a node to itself: they are trained on "+
			"and ranked as others", r.Loops))
	}
	for _, s := range r.Splits {
		if s.UnseenNodes > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d of its nodes have no edge in train, so that "+
				"nothing is learned of them", s.Name, s.UnseenNodes))
		}
		if s.UnseenTypes > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d of its edge types have no edge in train",
				s.Name, s.UnseenTypes))
		}
		if s.Reversed > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d of its %d edges have their reverse in "+
				"train, so that a model may have learned them: --edge-split keeps both in one "+
				"split", s.Name, s.Reversed, s.Count))
		}
	}
	return notes
}

// train is the place of the split train in edgefile.Splits, and so the number of the split.
const train = 0

// EdgeDraw decides at random which split an edge is in, by the seed and the pair of nodes that it
// connects. So all edges between two nodes are in one split: an edge and its reverse, and edges of
// several types or times. If the reverse of a test edge were in train, a model that has learned
// train would know the edge, whether the graph is called undirected or not.
type EdgeDraw struct {
	key    uint64
	below  [2]uint64 // a draw below below[i] is in split i
	last   int       // the last split with a share
	shares Shares
}

// ParseEdgeShares reads "random=85/5/10". All edges are in a split: the shares sum to 100.
func ParseEdgeShares(text string) (s Shares, err error) {
	if s, err = ParseShares(text); err != nil {
		return s, err
	}
	if math.Abs(s[0]+s[1]+s[2]-100) > 1e-6 {
		return s, fmt.Errorf("split %q: the shares sum to %g, want 100, since every edge is in a "+
			"split", text, s[0]+s[1]+s[2])
	}
	return s, nil
}

// NewEdgeDraw returns the draw of a seed.
func NewEdgeDraw(shares Shares, seed uint64) *EdgeDraw {
	d := &EdgeDraw{key: rng.Key(seed, 0x65646765), shares: shares}
	d.below[0] = threshold(shares[0])
	d.below[1] = threshold(shares[0] + shares[1])
	for i, share := range shares {
		if share > 0 {
			d.last = i
		}
	}
	return d
}

// threshold returns the number that this percentage of 64-bit draws is below.
func threshold(percent float64) uint64 {
	if percent >= 100-1e-9 {
		return math.MaxUint64
	}
	return uint64(percent/100*(1<<32)) << 32
}

// Names returns the splits that have a share.
func (d *EdgeDraw) Names() (names []string) {
	for i, share := range d.shares {
		if share > 0 {
			names = append(names, edgefile.Splits[i])
		}
	}
	return names
}

// Of returns the name of the split of edges between two nodes.
func (d *EdgeDraw) Of(a, b uint32) string { return edgefile.Splits[d.split(a, b)] }

// split returns the number of the split of edges between two nodes.
func (d *EdgeDraw) split(a, b uint32) int {
	pair := uint64(min(a, b))<<32 | uint64(max(a, b))
	at := rng.Sub(rng.Sub(d.key, pair), 0)
	for i := range d.last {
		if at < d.below[i] {
			return i
		}
	}
	return d.last
}
