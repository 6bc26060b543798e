// Package live adds to stores that are there: a commit makes a level of source files, and a
// compaction writes base and levels anew as one. docs/live.md tells how both are read.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/typedlevel"
	"gdb/layout/unfinished"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrUsage says that options contradict the store or each other.
var ErrUsage = ingest.ErrUsage

// ErrBusy says that another commit or compaction is under way.
var ErrBusy = errors.New("another commit or compaction writes this store: wait until it is done")

// workPath is the folder of a store where a commit or compaction is made.
const workPath = "tmp/live"

// Append adds what opt.Sources hold to the store in dir, as a level, and returns its record. It is
// there, whole and durable, when Append returns; on an error nothing of it is. A small commit is a
// file beside the levels, until such commits are worth a level. New ids are numbered
// after those of the store, in the order in which an ingest of the sources alone numbers them.
// Options that shape the store are its own, and must be zero. Features and labels of nodes that the
// store has replace what these had, and so do splits: such a node is in those of the sources alone.
//
// It ingests the sources twice: as a store of their own, and by the store's numbers. Besides the
// memory of an ingest it takes 4 bytes for each node of the sources, and 8 for each that the store
// has.
func Append(ctx context.Context, fs vfs.FS, dir string, opt ingest.Options) (*Added, error) {
	return add(ctx, fs, dir, "append", &appending{opt: opt})
}

// AppendNew does what Append does, and fails if a node of the sources' tables is in the store. It
// counts the edges that join nodes of the store.
func AppendNew(ctx context.Context, fs vfs.FS, dir string, opt ingest.Options) (*Added, error) {
	return add(ctx, fs, dir, "ingest", &appending{opt: opt, onlyNew: true})
}

func add(ctx context.Context, fs vfs.FS, dir, what string, by *appending) (added *Added,
	err error) {
	by.opt.NoEdges = true
	err = change(ctx, fs, dir, what, by.opt, func(a *appending) (err error) {
		a.onlyNew = by.onlyNew
		added, err = a.run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// Added tells what a commit did. Its level is of the edges and new nodes.
type Added struct {
	kv.LevelMeta
	Replaced uint64 // nodes that were there, and got other features, labels, splits or columns
	Before   bool   `json:",omitempty"` // the commit was whole when it was to go on
	// Anew says that the store was written anew as its new base, which has the level's edges;
	// Plain that it has nodes of one type.
	Anew  bool
	Plain bool `json:"-"`
	// Of AppendNew: the edges that the sources have of new nodes, and those between nodes of the
	// store.
	OfNew, Between uint64 `json:"-"`
}

// change locks a store, has do make a commit, and ends it. If it fails it removes what do made, and
// says what was under way.
func change(ctx context.Context, fs vfs.FS, dir, what string, opt ingest.Options,
	do func(a *appending) error) (err error) {
	w, err := beginAs(ctx, fs, dir, opt.Resume)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	a := &appending{work: w, opt: opt, meta: w.store.Meta(), keyed: map[int]bool{}}
	defer func() {
		switch {
		case err != nil && a.waits(ctx.Err() != nil, err):
			err = fmt.Errorf("%w: %w", ErrStopped, err)
		case err != nil && (a.recorded || !opt.Resume):
			err = errors.Join(err, w.giveUp(context.WithoutCancel(ctx)))
		}
		err = errors.Join(err, w.close())
	}()
	if err = errors.Join(CheckStore(w.store.Dir(), w.store.Meta()), a.checkKilled()); err == nil {
		a.opt.Memory = cmp.Or(a.opt.Memory, mem.Available()/2)
		a.budget = mem.NewBudget(max(1, a.opt.Memory-steps.ProcessBytes-steps.LeastBytes))
		if err = do(a); err == nil {
			a.opt.Resume = false
			err = w.finish(ctx, &a.opt)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// giveUp removes what a commit that failed has made, also a level that had its place already.
func (w *work) giveUp(ctx context.Context) error {
	if _, err := w.fs.Stat(w.path()); oserror.IsNotExist(err) {
		return nil
	}
	if err := w.reopen(ctx); err != nil {
		return err // the next commit sweeps
	}
	return w.sweep(ctx)
}

// work is a commit or compaction under way, which has the store for itself but for readers.
type work struct {
	fs    vfs.FS
	store *layout.Store
	dev   blockdev.Device
	lock  io.Closer
	small *layout.Commit // that the work wrote, and store does not tell of yet; else nil
	// killed is the record of a commit that was killed before this one; else nil.
	killed *unfinished.Record
}

// begin locks a store and removes what killed commits and compactions left.
func begin(ctx context.Context, fs vfs.FS, dir string) (w *work, err error) {
	return beginAs(ctx, fs, dir, false)
}

// beginAs does what begin does, and leaves what a killed commit made if that is to go on.
func beginAs(ctx context.Context, fs vfs.FS, dir string, resume bool) (w *work, err error) {
	if _, err := fs.Stat(fs.PathJoin(dir, "catalog")); err != nil { // nothing is made in dir
		_, err := layout.OpenLive(ctx, fs, dir)
		return nil, cmp.Or(err, fmt.Errorf("%s: %w", dir, ErrBusy))
	}
	tmp := fs.PathJoin(dir, "tmp")
	if err := fs.MkdirAll(tmp, 0o755); err != nil {
		return nil, fmt.Errorf("make %s: %w", tmp, err)
	}
	w = &work{fs: fs}
	w.lock, err = files.Lock(fs, fs.PathJoin(tmp, "live.lock"))
	if errors.Is(err, files.ErrLockHeld) {
		return nil, fmt.Errorf("%s: %w", dir, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	if w.store, err = layout.OpenLive(ctx, fs, dir); err == nil {
		w.killed, err = unfinished.Read(fs, w.path(recordPath))
	}
	switch {
	case err != nil:
	case !resume:
		err = w.sweepKilled(ctx)
	case w.killed != nil:
		if err = w.takeBack(); err == nil {
			err = w.sweepUnneeded(ctx)
		}
	}
	if err == nil {
		w.dev, err = blockdev.Open(blockdev.Options{})
	}
	if err != nil {
		return nil, errors.Join(err, w.lock.Close())
	}
	return w, nil
}

func (w *work) close() error { return errors.Join(w.dev.Close(), w.lock.Close()) }

// path returns a path below the folder of the work.
func (w *work) path(elem ...string) string {
	return w.store.Path(append([]string{workPath}, elem...)...)
}

func removeAll(fs vfs.FS, dir string) error {
	if err := fs.RemoveAll(dir); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// settle moves a finished store from the folder of the work to its place, where nothing reads it
// before the catalog lists it.
func (w *work) settle(from, to string) error {
	dir := w.store.Path(layout.LevelsDir)
	if err := w.fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	if err := w.fs.Rename(from, w.store.Path(to)); err != nil {
		return fmt.Errorf("rename %s: %w", from, err)
	}
	return errors.Join(steps.SyncDir(w.fs, w.path()), steps.SyncDir(w.fs, w.store.Path("tmp")),
		steps.SyncDir(w.fs, dir), steps.SyncDir(w.fs, w.store.Dir()))
}

// commit changes the catalog, if no other commit came before.
func (w *work) commit(ctx context.Context, change func(m *kv.Meta,
	set func(name string) (*roaring.Bitmap, error)) (map[string]*roaring.Bitmap, error)) error {
	was, now := w.store.Recorded().Snapshot, w.store.Meta().Snapshot
	return w.store.Catalog().Commit(ctx, w.store.HeldRecords(), func(m *kv.Meta,
		set func(name string) (*roaring.Bitmap, error)) (map[string]*roaring.Bitmap, error) {
		if m.Snapshot != was {
			return nil, ErrBusy
		}
		m.Snapshot, m.Manifest = now+1, kv.ManifestVersion
		sets, err := change(m, set)
		if err == nil && m.Snapshot > now && len(w.store.HeldCommits()) > 0 {
			err = errors.New("BUG: small commits were to be written out before this one")
		}
		return sets, err
	})
}

// appending is a commit under way.
type appending struct {
	*work
	opt    ingest.Options
	meta   *kv.Meta
	budget *mem.Budget
	lacks  *roaring.Bitmap // nodes of the sources without features

	recorded bool   // the commit has a record
	batch    *Batch // the source, if it is in memory; else nil
	// keyed are the relations that are columns of the tables of nodes of a typed store: edges of
	// nodes with other values go, since the tables have theirs.
	keyed   map[int]bool
	onlyNew bool // tables have new nodes alone; see AppendNew
}

// countEnds counts edges one of whose ends has a number from known on, and the others.
func countEnds(ctx context.Context, known uint64, edges typedlevel.Edges) (above, below uint64,
	err error) {
	err = edges(ctx, func(c *source.EdgeChunk) error {
		for i := range c.SrcInt {
			if max(c.SrcInt[i], c.DstInt[i]) < known {
				below++
			} else {
				above++
			}
		}
		return nil
	})
	return above, below, err
}

// checkIsNew fails if a node of a table is in the store and may not be.
func (a *appending) checkIsNew(name string) error {
	if !a.onlyNew {
		return nil
	}
	return input.Usage("node %s is in the store: leave it out of --nodes, whose nodes are new",
		name)
}

// run makes the levels, moves them to their places and lists them in the catalog; a small commit it
// writes to a file of its own instead.
func (a *appending) run(ctx context.Context) (done *Added, err error) {
	if a.meta.Typed() {
		return a.runTyped(ctx)
	}
	from, err := a.openSources(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if isPlainAnew(a.meta) {
		return a.appendPlain(ctx, from)
	}
	return a.appendLevel(ctx, from)
}

// appendLevel makes a small commit, or levels, of sources.
func (a *appending) appendLevel(ctx context.Context, from source.Source) (done *Added, err error) {
	fs, isLarge, err := a.scratch()
	if err != nil {
		return nil, err
	}
	if isLarge || a.opt.Resume {
		if done, err := a.claim(from.Info()); done != nil || err != nil {
			return done, err
		}
	}
	_, missing := a.fs.Stat(a.path("read"))
	if isLarge && a.isPlain(from.Info()) && missing != nil { // else it was no level at once
		done, err := a.atOnce(ctx, from)
		if !errors.Is(err, ingest.ErrNoLevel) {
			return done, err
		}
		if err := removeAll(a.fs, a.path("level")); err != nil {
			return nil, err
		}
		// A commit that goes on must not find it beside what is read.
		if err := steps.SyncDir(a.fs, a.path()); err != nil {
			return nil, err
		}
	}
	src, err := a.ingestSources(ctx, fs, from)
	if err != nil {
		return nil, err
	}
	small := a.isSmall(src.Meta())
	if !small {
		if err := a.flush(ctx, &a.opt); err != nil {
			return nil, err
		}
		a.meta = a.store.Meta()
	}
	add, err := a.match(ctx, src)
	if err != nil {
		return nil, err
	}
	defer add.close()
	done = &Added{LevelMeta: a.newLevel(uint64(len(add.fresh)), src.Meta().Source)}
	if small && (len(add.fresh) == 0 || !a.hasRows()) {
		return done, a.hold(ctx, add, &done.LevelMeta)
	}
	if small && len(a.store.HeldCommits()) > 0 {
		if err := a.flush(ctx, &a.opt); err != nil {
			return nil, err
		}
		a.meta = a.store.Meta()
	}
	if a.onlyNew {
		done.OfNew, done.Between, err = countEnds(ctx, add.Below(), add.Edges)
		if err != nil {
			return nil, err
		}
		if a.meta.Undirected { // in both directions, but for self loops
			done.OfNew, done.Between = (done.OfNew+1)/2, (done.Between+1)/2
		}
	}
	return done, a.writeLevels(ctx, add, done)
}

// newLevel returns the record of the next level.
func (a *appending) newLevel(nodes uint64, of kv.SourceMeta) kv.LevelMeta {
	number := a.meta.Snapshot + 1
	return kv.LevelMeta{Snapshot: number, Created: time.Now().UTC().Truncate(time.Second),
		Path: fmt.Sprintf("%s/%d", layout.LevelsDir, number), Nodes: nodes, Source: of}
}

// writeLevels makes the levels of a commit: of edges and new nodes, and of rows that it replaces.
func (a *appending) writeLevels(ctx context.Context, add *addition, done *Added) error {
	c := &commit{Added: done}
	var err error
	if c.splits, c.moved, err = add.splits(ctx); err != nil {
		return err
	}
	touched := c.moved.Clone()
	if c.rows, err = add.replacing(ctx, a.lacks); err != nil {
		return err
	}
	for _, r := range c.rows {
		touched.Or(r.of)
	}
	if done.Replaced = touched.GetCardinality(); add.meta.Edges > 0 || len(add.fresh) > 0 {
		if err := a.write(ctx, add, &done.LevelMeta, &a.opt, a.budget.Used()); err != nil {
			return err
		}
		c.levels = append(c.levels, done.LevelMeta)
	} else {
		done.Path = ""
	}
	for _, r := range c.rows {
		level := kv.LevelMeta{Snapshot: done.Snapshot, Created: done.Created, Rows: r.rows,
			RowNodes: uint64(len(r.fresh)),
			Path:     fmt.Sprintf("%s/%d-features", layout.LevelsDir, done.Snapshot)}
		if r.isLabels {
			level.Path = fmt.Sprintf("%s/%d-labels", layout.LevelsDir, done.Snapshot)
		}
		if err := a.write(ctx, r, &level, &a.opt, a.budget.Used()); err != nil {
			return err
		}
		c.levels = append(c.levels, level)
	}
	if len(c.levels) == 0 && done.Replaced == 0 {
		done.Snapshot = a.meta.Snapshot
		return nil
	}
	return a.list(ctx, c)
}

// commit is what a commit adds to the catalog.
type commit struct {
	*Added
	levels []kv.LevelMeta
	rows   []*replacing // of the levels that replace rows, in order
	splits map[string]*roaring.Bitmap
	moved  *roaring.Bitmap // old nodes that are in these splits alone from now on; nil: splits stay
}

// hasRows reports whether each node of the store has rows of values.
func (a *appending) hasRows() bool { return len(a.meta.Features) > 0 || a.meta.Labels != nil }

// openSources opens the sources, or the batch. The caller calls Close.
func (a *appending) openSources(ctx context.Context) (source.Source, error) {
	if a.batch != nil {
		return a.batch, nil
	}
	opt := a.shaped()
	return ingest.Open(ctx, a.fs, &opt)
}

// shaped returns the options of an ingest of the sources to a store of the same shape.
func (a *appending) shaped() ingest.Options {
	opt, m := a.opt, a.meta
	opt.Undirected, opt.BlockBytes = m.Undirected, m.BlockBytes
	opt.Dedup, opt.KeepDuplicates = has(m, "dedup"), has(m, "keep-duplicates")
	opt.KeepSelfLoops, opt.Partitioner, opt.Partitions = has(m, "keep-self-loops"), "", 0
	opt.Of = m
	if has(m, "normalize=row") {
		opt.Normalize = "row"
	}
	if len(m.Features) > 0 {
		opt.FeatureDType = m.Features[0].DType
	}
	return opt
}

// ingestSources makes a store of the sources alone.
func (a *appending) ingestSources(ctx context.Context, fs vfs.FS, src source.Source) (
	*layout.Store, error) {
	opt := a.shaped()
	opt.Out = a.path("read")
	if len(a.meta.EdgeSplits) > 0 { // edges come as the sources have them
		opt.Undirected, opt.Dedup, opt.KeepDuplicates = false, false, true
	}
	if len(a.meta.Features) > 0 {
		a.lacks = roaring.New()
		opt.Lacks = a.lacks.Add
	}
	if _, err := ingest.RunSource(ctx, fs, src, opt); err != nil {
		return nil, err
	}
	return layout.Open(ctx, fs, opt.Out)
}

// scratch returns a file system to read the sources to, and whether they are large.
func (a *appending) scratch() (fs vfs.FS, isLarge bool, err error) {
	if a.batch == nil {
		isLarge = !fitsMemory(a.fs, &a.opt)
	} else {
		edges, nodes := a.batch.Len()
		isLarge = uint64(edges+nodes) > smallEdges
	}
	if isLarge {
		return a.fs, true, nil
	}
	fs, err = inMemory(a.fs, a.path())
	return fs, false, err
}

// leveled is what a level is written of.
type leveled interface {
	ingest.Again
	nodes() *roaring.Bitmap
}

// write makes a level, and moves it to its place. It takes the memory that opt says, but for used
// bytes.
func (w *work) write(ctx context.Context, add leveled, level *kv.LevelMeta, of *ingest.Options,
	used int64) error {
	meta := w.store.Meta()
	opt := ingest.Options{Out: w.path("level"), Both: slices.Contains(meta.Directions, "out"),
		BlockBytes: meta.BlockBytes, Threads: of.Threads, Version: of.Version,
		Progress: of.Progress, Normalize: "none", Resume: of.Resume, UUID: of.UUID}
	if err := w.goOnWith(&opt); err != nil {
		return err
	}
	opt.Memory = of.Memory - used
	opt.AllowNaN = len(add.Info().Features) > 0
	if len(meta.Features) > 0 && opt.AllowNaN {
		opt.FeatureDType = meta.Features[0].DType
	}
	m, err := ingest.RunAgain(ctx, w.fs, add, opt)
	if err != nil {
		return err
	}
	if m.Labels != nil && !slices.Equal(m.Labels.Classes, meta.Labels.Classes) {
		return input.Usage("the labels of the new nodes have classes that the store lacks: it "+
			"has %s", strings.Join(meta.Labels.Classes, ", "))
	}
	level.UUID, level.Edges = m.UUID, m.Edges
	for _, f := range m.Files {
		level.Bytes += f.Size
	}
	s, err := layout.Open(ctx, w.fs, opt.Out)
	if err != nil {
		return err
	}
	err = s.Catalog().Commit(ctx, nil, func(*kv.Meta, func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		return map[string]*roaring.Bitmap{kv.LevelNodes: add.nodes()}, nil
	})
	if err != nil {
		return err
	}
	return w.settle(opt.Out, level.Path)
}

// list makes levels a part of the store: the catalog lists them, and its splits and counts tell of
// all nodes.
func (a *appending) list(ctx context.Context, c *commit) error {
	var made []*kv.Meta
	for _, l := range c.levels {
		s, err := layout.Open(ctx, a.fs, a.store.Path(l.Path))
		if err != nil {
			return err
		}
		made = append(made, s.Meta())
	}
	replaced := roaring.New()
	for _, r := range c.rows {
		if r.isLabels {
			replaced = r.of
		}
	}
	labels, err := a.labelsWithout(ctx, replaced)
	if err != nil {
		return err
	}
	return a.commit(ctx, func(m *kv.Meta, set func(name string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		m.Nodes, m.Edges = m.Nodes+c.Nodes, m.Edges+c.Edges
		m.Levels = append(m.Levels, c.levels...)
		m.Labels = labels
		for _, of := range made {
			m.Stats.SelfLoops += of.Stats.SelfLoops
			for i, n := range of.Stats.TypeCounts {
				m.Stats.TypeCounts[i] += n
			}
			if of.Labels != nil {
				m.Labels.Labeled += of.Labels.Labeled
				for i, n := range of.Labels.ClassCounts {
					m.Labels.ClassCounts[i] += n
				}
			}
		}
		return c.putSplits(m, set)
	})
}

// putSplits returns the splits that the commit changes.
func (c *commit) putSplits(m *kv.Meta, set func(name string) (*roaring.Bitmap, error)) (
	map[string]*roaring.Bitmap, error) {
	for name := range c.splits {
		if !slices.ContainsFunc(m.Splits, func(s kv.SplitMeta) bool { return s.Name == name }) {
			return nil, input.Usage("the sources have a split %q, which the store lacks", name)
		}
	}
	sets := map[string]*roaring.Bitmap{}
	if c.moved == nil { // edges alone
		return sets, nil
	}
	for i := range m.Splits {
		s := &m.Splits[i]
		with, err := set(s.Name)
		if err != nil {
			return nil, err
		}
		more := c.splits[s.Name]
		if more == nil && !with.Intersects(c.moved) {
			continue
		}
		if with.AndNot(c.moved); more != nil {
			with.Or(more)
		}
		s.Count, sets[s.Name] = with.GetCardinality(), with
	}
	return sets, nil
}
