package inspect

import (
	"errors"
	"fmt"
	"slices"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"
	"gdb/layout/topology"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/errors/oserror"
)

// piece is a folder with files of a store that was appended to: a base or a level, which is a store
// by itself.
type piece struct {
	folder string // relative to the store; "" for its own files
	*layout.Store
}

// path returns the path of a file of the piece, relative to the whole store.
func (p *piece) path(name string) string {
	if p.folder == "" {
		return name
	}
	return p.folder + "/" + name
}

// liveChecker checks a store that was appended to.
type liveChecker struct {
	checker // of the whole store: its catalog, and what the merged lists mean
	pieces  []piece
}

// checkLive checks the catalog, the pieces that any snapshot has, each as a store by itself, and
// the files of small commits. With Full it also compares the merged lists and labels with the
// catalog, which takes the memory of the lists of all levels.
func checkLive(c checker) (*CheckReport, error) {
	l := &liveChecker{checker: c}
	l.begin(layout.CatalogName)
	h, err := l.s.Catalog().History(l.ctx)
	if err == nil {
		err = l.open(h)
	}
	if err != nil {
		return nil, err
	}
	if l.opt.File == "" || l.opt.File == layout.CatalogName {
		if err := l.liveCatalog(h); err != nil {
			return nil, err
		}
	}
	var failed error
	for _, p := range l.pieces {
		failed = errors.Join(failed, l.piece(p))
		if l.ctx.Err() != nil {
			return nil, l.ctx.Err()
		}
	}
	if l.opt.Full && l.opt.File == "" && failed == nil && len(l.report.Findings) == 0 {
		failed = l.merged()
	}
	return l.report, errors.Join(failed, l.unchecked())
}

// open opens the pieces that snapshots have, and counts their bytes.
func (l *liveChecker) open(h *kv.History) error {
	base := l.s.Recorded().Base
	l.pieces = append(l.pieces, piece{base, l.s.Base()})
	for _, level := range l.s.Levels() {
		if level.Held == nil {
			l.pieces = append(l.pieces, piece{level.Of.Path, level.Store})
		}
	}
	metas := []*kv.Meta{h.Head}
	for _, of := range h.Snapshots {
		if of.Meta != nil {
			metas = append(metas, of.Meta)
		}
	}
	for _, m := range metas {
		for _, folder := range m.Folders() {
			if slices.ContainsFunc(l.pieces, func(p piece) bool { return p.folder == folder }) {
				continue
			}
			of := layout.NewStore(l.s.FS(), l.s.Dir(), m.BaseMeta())
			var err error
			if folder != "" {
				of, err = layout.OpenLive(l.ctx, l.s.FS(), l.s.Path(folder))
			}
			if errors.Is(err, kv.ErrNoStore) {
				l.find(-1, -1, "%s, of an earlier snapshot, is not there", folder)
			} else if err != nil {
				return err
			} else {
				l.pieces = append(l.pieces, piece{folder, of})
			}
		}
	}
	for _, p := range l.pieces {
		for _, m := range p.Meta().Files {
			if l.opt.File == "" || l.opt.File == p.path(m.Path) {
				l.total += m.Size
			}
		}
	}
	if l.total == 0 && l.opt.File != "" && l.opt.File != layout.CatalogName {
		return fmt.Errorf("layout: check %s: the store has no such file", l.opt.File)
	}
	return nil
}

// piece checks a base or a level.
func (l *liveChecker) piece(p piece) error {
	c := checker{ctx: l.ctx, dev: l.dev, s: p.Store, opt: l.opt, report: &CheckReport{},
		done: l.done, total: l.total, apart: p.folder == ""}
	for _, m := range p.Meta().Files {
		if l.opt.File == "" || l.opt.File == p.path(m.Path) {
			c.files = append(c.files, m)
		}
	}
	err := error(nil)
	if c.apart && l.opt.Full && l.opt.File == "" {
		err = c.listings()
	}
	if !c.apart && (l.opt.File == "" || l.opt.File == p.path(layout.CatalogName)) {
		err = c.catalog()
	}
	err = errors.Join(err, c.eachFile())
	l.done = c.done
	l.report.Files += c.report.Files
	l.report.Bytes += c.report.Bytes
	l.report.Strangers += c.report.Strangers
	for _, f := range c.report.Findings {
		f.Path = p.path(f.Path)
		l.report.Findings = append(l.report.Findings, f)
	}
	return err
}

// liveCatalog checks the metadata, and with Full the sets that it names, the files of small commits
// and what else is in the store.
func (l *liveChecker) liveCatalog(h *kv.History) error {
	l.begin(layout.CatalogName)
	defer l.end()
	findings, err := l.s.Catalog().Verify(l.ctx)
	if err != nil {
		return err
	}
	l.report.Findings = append(l.report.Findings, findings...)
	if len(findings) > 0 {
		return nil
	}
	if err := l.commits(h); err != nil || !l.opt.Full {
		return err
	}
	for _, level := range l.s.Levels() {
		if _, err := level.Nodes(l.ctx); err != nil {
			if err := l.note(err); err != nil {
				return err
			}
		}
	}
	for _, split := range l.s.Meta().Splits {
		if _, err := l.s.Split(l.ctx, split.Name); err != nil {
			if err := l.note(err); err != nil {
				return err
			}
		}
	}
	return errors.Join(l.former(), l.strangers())
}

// former finds the files of a base that no snapshot has any more.
func (l *liveChecker) former() error {
	if slices.ContainsFunc(l.pieces, func(p piece) bool { return p.folder == "" }) {
		return nil
	}
	return l.each("", func(rel string, _ bool) error {
		if slices.Contains(dataFolders, rel) {
			l.report.Left = append(l.report.Left, rel)
		}
		return nil
	})
}

// commits verifies the files of small commits, and finds what commits that were killed have left.
func (l *liveChecker) commits(h *kv.History) error {
	names, err := l.s.FS().List(l.s.Path(layout.LevelsDir))
	if err != nil && !oserror.IsNotExist(err) {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		path := layout.LevelsDir + "/" + name
		number, is := layout.CommitNumber(name)
		_, known := h.Find(number)
		switch {
		case is && (known || number > h.Head.Snapshot):
			size, err := l.s.VerifyCommit(number)
			if oserror.IsNotExist(err) {
				continue // it was written out as a level meanwhile
			}
			if err := l.note(err); err != nil {
				return err
			}
			l.report.Files++
			l.report.Bytes += size
		case !slices.ContainsFunc(l.pieces, func(p piece) bool { return p.folder == path }):
			l.report.Left = append(l.report.Left, path)
		}
	}
	return nil
}

// merged checks what the merged lists and labels mean.
func (l *liveChecker) merged() error {
	l.begin(layout.CatalogName)
	defer l.end()
	deleted, err := l.s.Deleted(l.ctx)
	if err != nil {
		return l.note(err)
	}
	if deleted == nil {
		deleted = roaring.New()
	}
	for _, name := range l.s.Meta().Directions {
		dir := layout.Direction(slices.Index([]string{"in", "out"}, name))
		if err := l.mergedLists(dir, deleted); err != nil {
			return l.note(err)
		}
	}
	return l.note(l.mergedLabels())
}

// mergedLists compares the lists of a direction with the catalog, and with the deleted nodes.
func (l *liveChecker) mergedLists(dir layout.Direction, deleted *roaring.Bitmap) error {
	m, numbers := l.s.Meta(), layout.ListsOf(l.s.Meta(), dir)
	edges, loops, types := uint64(0), uint64(0), make([]uint64, len(m.EdgeTypes))
	err := topology.Scan(l.ctx, l.s, l.dev, dir, func(first layout.NodeID, _ bool,
		lists *listfile.Lists) error {
		for i := range len(lists.Off) - 1 {
			v, from, to := first+layout.NodeID(i), lists.Off[i], lists.Off[i+1]
			if to > from && deleted.Contains(uint32(v)) {
				l.find(-1, -1, "node %d was deleted and has %d %s-edges", v, to-from, dir)
			}
			for k, u := range lists.Nbrs[from:to] {
				if k > 0 && !inOrder(numbers, v, lists, from+uint64(k)) {
					l.find(-1, -1, "the merged %s-list of node %d is not sorted", dir, v)
				}
				if u == v {
					loops++
				}
			}
			edges += to - from
		}
		for _, t := range lists.Types {
			if int(t) < len(types) {
				types[t]++
			}
		}
		return l.ctx.Err()
	})
	if err != nil {
		return err
	}
	if edges != m.Edges || loops != m.Stats.SelfLoops {
		l.find(-1, -1, "the merged %s-lists have %d edges and %d self loops, the catalog %d and %d",
			dir, edges, loops, m.Edges, m.Stats.SelfLoops)
	}
	for t, n := range types {
		if t >= len(m.Stats.TypeCounts) || n != m.Stats.TypeCounts[t] {
			l.find(-1, -1, "the merged %s-lists have %d edges of type %q, the catalog has another "+
				"count", dir, n, m.EdgeTypes[t])
		}
	}
	return nil
}

// inOrder reports whether entry k of the list of a node may follow the one before it. Of a typed
// store the lists of a node by each relation follow each other.
func inOrder(numbers *layout.NodeLists, v layout.NodeID, l *listfile.Lists, k uint64) bool {
	if numbers == nil || l.Types[k-1] == l.Types[k] {
		return l.Nbrs[k-1] <= l.Nbrs[k]
	}
	before, err := numbers.List(v, l.Types[k-1])
	now, err2 := numbers.List(v, l.Types[k])
	return err == nil && err2 == nil && before < now
}

// labelRows is how many rows of labels are read together.
const labelRows = uint64(1 << 16)

// mergedLabels compares the labels of all levels with the catalog.
func (l *liveChecker) mergedLabels() (err error) {
	m := l.s.Meta().Labels
	if m == nil || m.Kind == "multi" { // of these nothing is appended
		return nil
	}
	r, err := rowfile.Open(l.ctx, l.s, l.dev, m.Rows, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	deleted, err := l.s.Deleted(l.ctx) // whose labels do not count
	if err != nil {
		return err
	}
	meaning := &labelMeaning{c: &l.checker, meta: m, counts: make([]uint64, len(m.Classes))}
	width := uint64(m.Rows.RowBytes)
	rows := make([]byte, labelRows*width)
	for first := uint64(0); first < l.s.Meta().Nodes; first += labelRows {
		n := min(labelRows, l.s.Meta().Nodes-first)
		if err := r.ScanRaw(l.ctx, layout.NodeID(first), int(n), rows[:n*width]); err != nil {
			return err
		}
		for i := range n {
			if deleted != nil && deleted.Contains(uint32(first+i)) {
				continue
			}
			if what := meaning.row(rows[i*width:][:width]); what != "" {
				l.find(-1, -1, "label of node %d: %s", first+i, what)
			}
		}
	}
	meaning.end()
	return nil
}
