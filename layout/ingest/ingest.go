// Package ingest turns source files into a store, in bounded memory: it streams a source, resolves
// ids, sorts edges externally, and writes everything in tmp/ until one catalog transaction makes
// the store exist.
package ingest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/kv/catalog"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/keys"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/stream"
	"gdb/layout/ingest/tables"
	"gdb/layout/rowfile"
	"gdb/layout/splits"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Errors of an ingest, besides input.Error and errors of the file system.
var (
	// ErrUnfinished says that an earlier ingest into this store was not finished.
	ErrUnfinished = errors.New("an unfinished ingest is here: go on with --resume, or delete it")
	// ErrBusy says that another ingest writes this store now.
	ErrBusy = errors.New("another ingest is writing this store: wait until it is done")
	// ErrExists says that the store exists already.
	ErrExists = errors.New("a store is here already: delete it, or choose another --out")
	// ErrUsage says that options contradict each other or the source.
	ErrUsage = input.ErrUsage
	// ErrNotEmpty says that the directory holds files, and no ingest made them.
	ErrNotEmpty = errors.New("the directory is not empty, and not a store: choose another --out")
	// ErrFile says that a file is where the store is to be.
	ErrFile = errors.New("a file is here: --out names a directory that is not there yet")
	// ErrChanged says that an ingest cannot be resumed, because options or sources are others.
	ErrChanged = errors.New("not the ingest that was interrupted")
)

// Run ingests the sources to opt.Out and returns the metadata of the new store. On error nothing
// is left that looks like a store; what Resume needs stays in OUT/tmp unless the input was bad.
func Run(ctx context.Context, fs vfs.FS, opt Options) (meta *kv.Meta, err error) {
	src, err := source.Open(ctx, fs, opt.read())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return RunSource(ctx, fs, src, opt)
}

// RunSource ingests an opened source.
func RunSource(ctx context.Context, fs vfs.FS, src source.Source, opt Options) (*kv.Meta, error) {
	if opt.Streams() {
		return nil, input.Usage("--partitioner %s reads the lists of a store: see parts.Ingest",
			opt.Partitioner)
	}
	p, err := newPipeline(fs, src, opt)
	if err != nil {
		return nil, err
	}
	return p.run(ctx)
}

// defaultBlock is the default of Options.BlockBytes.
const defaultBlock = 4096

// newPipeline checks the options and plans.
func newPipeline(fs vfs.FS, src source.Source, opt Options) (*pipeline, error) {
	opt.BlockBytes = cmp.Or(opt.BlockBytes, defaultBlock)
	info := src.Info()
	if err := checkOptions(&opt, info); err != nil {
		return nil, err
	}
	if source.IsMade(opt.Features) {
		if _, err := source.NewMaker(opt.Features, 0, 0, 0); err != nil {
			return nil, input.Usage("%w", err)
		}
		if len(info.Features) > 0 {
			info.Features = nil
			info.Notes = append(info.Notes, "the source's features are not read: --features "+
				opt.Features)
		}
	}
	split, err := newEdgeSplit(&opt, info)
	if err != nil {
		return nil, err
	}
	memory, err := steps.PlanMemory(opt.Memory)
	if err != nil {
		return nil, err
	}
	reverses := opt.Undirected || info.AddInverse
	work := &steps.Work{FS: fs, Out: opt.Out, Dir: fs.PathJoin(opt.Out, layout.IngestPath),
		Memory: memory, Budget: mem.NewBudget(memory.Total - steps.ProcessBytes),
		Report: opt.Progress}
	named, _ := src.(keys.Named)
	return &pipeline{Work: work, src: src, named: named, info: info, opt: opt, hash: ids.Hash,
		random: rand.Reader, EdgeSplit: split, codec: stream.EdgeCodec{Typed: info.Typed,
			Weighted: info.Weighted, Timed: info.Timed, Split: len(info.EdgeSplits) > 0 ||
				split.Times != nil || split.Draw != nil && reverses,
			Numbered: opt.Merge == "last" || len(info.EdgeTables) > 0}}, nil
}

// checkChoices finds values that are none of those that an option has; "" is the default of all.
func checkChoices(opt *Options) error {
	for _, c := range []struct {
		flag, value string
		values      []string
	}{{"partitioner", opt.Partitioner, Partitioners},
		{"feature-dtype", opt.FeatureDType, FeatureDTypes},
		{"normalize", opt.Normalize, Normalizes},
		{"missing-nodes", opt.MissingNodes, MissingNodes},
		{"merge", opt.Merge, stream.MergeNames}} {
		if c.value != "" && !slices.Contains(c.values, c.value) {
			return input.Usage("--%s %s is not one of %s", c.flag, c.value,
				strings.Join(c.values, ", "))
		}
	}
	return nil
}

// checkOptions finds options that contradict each other or the source.
func checkOptions(opt *Options, info *source.Info) error {
	bad := input.Usage
	if err := checkChoices(opt); err != nil {
		return err
	}
	switch {
	case opt.Out == "":
		return bad("--out is missing")
	case opt.Partitions < 0:
		return bad("--partitions %d is negative", opt.Partitions)
	case opt.Partitions > 1 && (opt.Partitioner == "" || opt.Partitioner == "none"):
		return bad("--partitions %d needs --partitioner %s", opt.Partitions,
			strings.Join(Partitioners[1:], ", "))
	case opt.Streams() && opt.Partitions < 2:
		return bad("--partitioner %s needs --partitions, 2 or more", opt.Partitioner)
	case opt.Restream < 0:
		return bad("--restream %d is negative", opt.Restream)
	case (opt.Restream > 0 || opt.Cluster) && !opt.Streams():
		return bad("--restream and --cluster are for --partitioner %s, which read the lists",
			strings.Join(Partitioners[streamFrom:], ", "))
	case opt.Merge != "" && !info.Weighted:
		return bad("--merge %s, but edges have no weights: --weight-col names their column",
			opt.Merge)
	case (opt.Dedup || opt.Merge != "") && opt.KeepDuplicates:
		return bad("--dedup, --merge and --keep-duplicates contradict each other")
	case opt.BlockBytes < 4096 || opt.BlockBytes > 1<<20 || opt.BlockBytes&(opt.BlockBytes-1) != 0:
		return bad("--block %d is not a power of two from 4KiB to 1MiB", opt.BlockBytes)
	}
	if err := checkTypedOptions(opt, info); err != nil {
		return err
	}
	if err := checkFeatureOptions(opt, info); err != nil {
		return err
	}
	return checkLabelOptions(opt, info)
}

// checkFeatureOptions finds options of features that are read where none are.
func checkFeatureOptions(opt *Options, info *source.Info) error {
	lacking := "there are no features: --feature-cols names their columns"
	made := source.IsMade(opt.Features)
	if info.RowIDs {
		lacking = "there are no features: --features names their array"
	}
	for _, f := range []struct {
		flag  string
		given bool
	}{{"--feature-cols " + opt.FeatureCols, opt.FeatureCols != ""},
		{"--categorical " + opt.Categorical, opt.Categorical != ""},
		{"--normalize " + opt.Normalize, opt.Normalize != "" && opt.Normalize != "none"},
		{"--fill " + opt.Fill, opt.Fill != ""}, {"--allow-nan", opt.AllowNaN},
		{"--missing-nodes " + opt.MissingNodes, opt.MissingNodes == "zero"},
		{"--feature-dtype " + opt.FeatureDType, opt.dtype() != rowfile.F32 && !made}} {
		switch {
		case f.given && made:
			return input.Usage("--features %s makes features; %s is for features that are read",
				opt.Features, f.flag)
		case f.given && len(info.Features) == 0:
			return input.Usage("%s, but %s", f.flag, lacking)
		}
	}
	if opt.MissingNodes == "zero" && info.RowIDs {
		return input.Usage("--missing-nodes zero, but arrays have a row for each node")
	}
	return nil
}

// checkLabelOptions finds options of labels and splits where there are none.
func checkLabelOptions(opt *Options, info *source.Info) error {
	switch {
	case info.Labels == nil && opt.MultiLabel:
		return input.Usage("--multi-label, but there are no labels: --labels names their file")
	case info.Labels == nil && opt.LabelSep != "":
		return input.Usage("--label-sep %s, but there are no labels: --label-col names their "+
			"column", opt.LabelSep)
	case len(info.Splits) > 0 && opt.RandomSplit != "":
		do := message.Program + " split draws others later"
		for _, c := range info.Columns {
			if c.Role == "split" {
				do = "--split-col none leaves the column " + c.Name + " out"
			}
		}
		return input.Usage("--split %s would replace the splits of the source, %s: leave it "+
			"out; %s", opt.RandomSplit, strings.Join(info.Splits, ", "), do)
	case len(info.Splits) == 0 && opt.SplitColumn != 0:
		return input.Usage("--split-column %d, but there are no splits of several columns",
			opt.SplitColumn)
	}
	return nil
}

// run takes the ingest from what is on disk to the store, and cleans up what a failure makes
// useless. Nothing is changed without the lock but for making the directory that it is in.
func (p *pipeline) run(ctx context.Context) (meta *kv.Meta, err error) {
	what, err := p.look(ctx)
	if err != nil {
		return nil, p.advise(err)
	}
	lock, made, err := p.lock()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if what, err = p.look(ctx); err != nil { // another may have come and gone
		return nil, err
	}
	if what.meta != nil {
		return p.complete(what.meta)
	}
	if err := p.begin(made); err != nil {
		return nil, err
	}
	p.describe()
	r, err := p.all(ctx)
	if err == nil {
		meta, err = p.place(ctx, r)
	}
	var bad *input.Error
	switch {
	case errors.As(err, &bad), errors.Is(err, ErrUsage):
		return nil, errors.Join(err, p.undo())
	case vfs.IsNoSpaceError(err):
		return nil, p.errFull(err)
	case err != nil:
		return nil, err
	}
	return meta, p.cleanUp()
}

// lock makes the directory of the ingest and keeps others out of it. made says that the store's
// directory was not there before.
func (p *pipeline) lock() (lock io.Closer, made bool, err error) {
	const triesMost = 100
	for range triesMost {
		_, err := p.FS.Stat(p.Out)
		made = isNotExist(err)
		if err := p.FS.MkdirAll(p.Dir, 0o755); err != nil {
			return nil, false, fmt.Errorf("ingest: make %s: %w", p.Dir, err)
		}
		lock, err := files.Lock(p.FS, p.Path("lock"))
		switch {
		case err == nil:
			return lock, made, nil
		case errors.Is(err, files.ErrLockHeld):
			return nil, false, fmt.Errorf("ingest: %s: %w", p.Out, ErrBusy)
		case !errors.Is(err, files.ErrLockRemoved) && !isNotExist(err):
			return nil, false, fmt.Errorf("ingest: %w", err)
		}
		// The holder before has just removed the directory.
	}
	return nil, false, fmt.Errorf("ingest: %s: %w", p.Out, ErrBusy)
}

// advise replaces the advice to resume an unfinished ingest while that one still runs.
func (p *pipeline) advise(err error) error {
	if !errors.Is(err, ErrUnfinished) {
		return err
	}
	lock, failed := files.Lock(p.FS, p.Path("lock"))
	if errors.Is(failed, files.ErrLockHeld) {
		return fmt.Errorf("ingest: %s: %w", p.Out, ErrBusy)
	}
	if failed == nil {
		failed = lock.Close()
	}
	return errors.Join(err, failed)
}

// found is what there is in the store's directory: a store, whose metadata this is, that needs at
// most a cleaning up; or nothing, or an ingest to resume, whose journal is p.Journal then.
type found struct{ meta *kv.Meta }

// look finds out what is in the store's directory, or why no ingest may begin there. It changes
// nothing.
func (p *pipeline) look(ctx context.Context) (w found, err error) {
	names, err := p.FS.List(p.Out)
	if stat, serr := p.FS.Stat(p.Out); serr == nil && !stat.IsDir() {
		return w, fmt.Errorf("ingest: %s: %w", p.Out, ErrFile)
	}
	if err != nil && !isNotExist(err) {
		return w, fmt.Errorf("ingest: %w", err)
	}
	if p.Journal, err = steps.LoadJournal(p.FS, p.Dir); err != nil {
		return w, err
	}
	meta, err := p.catalog().Meta(ctx)
	switch {
	case err == nil && !p.resumed(meta) && (p.Journal == nil || p.Journal.UUID != meta.UUID):
		return w, fmt.Errorf("ingest: %s: %w", p.Out, ErrExists)
	case err == nil:
		return found{meta}, nil
	case !errors.Is(err, kv.ErrNoStore) && !isNotExist(err):
		return w, fmt.Errorf("ingest: %s: %w: %w", p.Out, ErrExists, err)
	case p.Journal != nil && !p.opt.Resume:
		return w, fmt.Errorf("ingest: %s: %w", p.Out, ErrUnfinished)
	case p.Journal != nil:
		return w, p.checkSame()
	case slices.ContainsFunc(names, func(n string) bool { return n != "tmp" }):
		return w, fmt.Errorf("ingest: %s: %w", p.Out, ErrNotEmpty)
	}
	return w, nil
}

// begin resumes the ingest whose journal is there, or starts one.
func (p *pipeline) begin(made bool) error {
	if p.Journal == nil {
		return p.start(made)
	}
	return errors.Join(p.MakeDirs(), p.Sweep(), p.VerifyLive())
}

// resumed reports whether a store is what this ingest is asked to finish.
func (p *pipeline) resumed(meta *kv.Meta) bool {
	want := p.source()
	return p.opt.Resume && slices.Equal(meta.Source.Paths, want.Paths) &&
		slices.Equal(meta.Source.Args, want.Args)
}

// complete ends an ingest that was killed after its last act: it is done, but for the cleaning up.
// To resume one that is done already is no error.
func (p *pipeline) complete(meta *kv.Meta) (*kv.Meta, error) {
	// The journal is the first to go: without one, cleaning up had begun.
	if err := p.cleanUp(); err != nil {
		return nil, err
	}
	if p.resumed(meta) {
		p.note("%s is complete already", p.Out)
		return meta, nil
	}
	return nil, fmt.Errorf("ingest: %s: %w", p.Out, ErrExists)
}

// start begins a journal.
func (p *pipeline) start(made bool) error {
	p.Journal = steps.NewJournal(p.FS, p.Dir)
	p.Journal.MadeOut, p.Journal.Created = made, time.Now().UTC().Truncate(time.Second)
	if p.Journal.UUID = p.opt.UUID; p.Journal.UUID != (kv.UUID{}) {
	} else if _, err := io.ReadFull(p.random, p.Journal.UUID[:]); err != nil {
		return fmt.Errorf("ingest: make an identity: %w", err)
	}
	var err error
	if p.Journal.Options, p.Journal.Sources, err = p.fingerprint(); err != nil {
		return err
	}
	if err := p.MakeDirs(); err != nil {
		return err
	}
	return p.Journal.Save()
}

func (p *pipeline) catalog() *catalog.Catalog {
	return catalog.New(p.FS, p.FS.PathJoin(p.Out, "catalog"))
}

// undo removes all that the ingest wrote, since the input must be changed before the next one.
func (p *pipeline) undo() error {
	if p.Journal.MadeOut {
		if err := p.FS.RemoveAll(p.Out); err != nil {
			return fmt.Errorf("ingest: clean up: %w", err)
		}
		return steps.SyncDir(p.FS, p.FS.PathDir(p.Out))
	}
	return p.cleanUp()
}

// cleanUp removes the temporary directory; the journal goes first, so that what is left after a
// crash is not taken for an ingest to resume.
func (p *pipeline) cleanUp() error {
	if err := p.FS.Remove(p.Path(layout.JournalName)); err != nil && !isNotExist(err) {
		return fmt.Errorf("ingest: clean up: %w", err)
	}
	if err := p.FS.RemoveAll(p.FS.PathDir(p.Dir)); err != nil {
		return fmt.Errorf("ingest: clean up: %w", err)
	}
	return steps.SyncDir(p.FS, p.Out)
}

// errFull returns err with what the full disk lacks.
func (p *pipeline) errFull(err error) error {
	plan := p.plan()
	return fmt.Errorf("ingest: the disk of %s is full: the store needs about %s, and %s more "+
		"while it is made; make room and go on with --resume: %w", p.Out,
		mem.FormatSize(plan.DiskBytes), mem.FormatSize(plan.TempBytes), err)
}

func isNotExist(err error) bool { return err != nil && oserror.IsNotExist(err) }

// describe notes what was found, and whether it may not fit on the disk.
func (p *pipeline) describe() {
	if p.again == nil {
		inputs, verb := p.opt.inputs(), "is"
		if len(inputs) > 1 {
			verb = "are"
		}
		p.note("%s %s read as %s", strings.Join(inputs, " "), verb, p.info.Format)
	}
	for _, n := range p.info.Notes {
		p.note("%s", n)
	}
	if p.opt.Found != nil {
		p.opt.Found(p.info)
	}
	usage, err := p.FS.GetDiskUsage(p.Out)
	plan := p.plan()
	if need := plan.DiskBytes + plan.TempBytes; err == nil && usage.AvailBytes < uint64(need) {
		p.note("the disk of %s has %s left, and about %s will be needed", p.Out,
			mem.FormatSize(int64(usage.AvailBytes)), mem.FormatSize(need))
	}
}

// note writes a line for the user.
func (p *pipeline) note(format string, args ...any) {
	if p.opt.Notes != nil {
		// A note that cannot be written must not end the ingest.
		_, _ = fmt.Fprintf(p.opt.Notes, "ingest: "+format+"\n", args...)
	}
}

// pipeline is one ingest. Its work is a sequence of steps; each writes files below tmp/ingest,
// makes them durable, and is then recorded in the journal with what it found out.
type pipeline struct {
	*steps.Work
	src   source.Source
	info  *source.Info
	again Again      // src, if it is a store that is written anew; else nil
	into  Into       // the store that a level is made for; else nil
	named keys.Named // src, if its nodes are known; else nil
	level *LevelNodes
	opt   Options
	codec stream.EdgeCodec
	splits.EdgeSplit
	// hash is ids.Hash, or a weaker one in tests.
	hash func(seed uint64, external []byte) uint64
	// random gives the identity of the store, and nothing else.
	random io.Reader

	hashSeed uint64 // of the scan that comes next
	rowBytes int    // that the scan has found some rows of edges to have at least
	// firsts are the first nodes of each type, of a source whose types are ranges.
	firsts []uint64
	// keysFound are the integer ids of types.
	keysFound *keys.Found
}

// all runs the steps of the ingest, but for the last: the store's coming into being.
func (p *pipeline) all(ctx context.Context) (*results, error) {
	r := &results{}
	var err error
	if p.keysFound, err = p.findKeys(ctx); err != nil {
		return nil, err
	}
	if r.scan, err = p.scan(ctx); err != nil {
		return nil, err
	}
	m, err := p.number(ctx, r)
	if err != nil {
		return nil, err
	}
	return r, errors.Join(p.attachAll(ctx, r, m), m.free())
}

// attachAll runs the steps that need node numbers. Those that may meet bad input come first, so
// that it is found before the long work.
func (p *pipeline) attachAll(ctx context.Context, r *results, m *nodeMap) (err error) {
	if source.IsMade(p.opt.Features) { // too many nodes for it are found early
		if _, err := source.NewMaker(p.opt.Features, m.nodes, 0, 0); err != nil {
			return input.Usage("%w", err)
		}
	}
	if r.labels, err = p.labels(ctx, m); err != nil {
		return err
	}
	if r.splits, err = p.splits(ctx, m); err != nil {
		return err
	}
	for i := range p.info.Features {
		f, err := p.features(ctx, m, i)
		if err != nil {
			return err
		}
		r.features = append(r.features, f)
	}
	if r.columns, err = p.nodeTables(ctx, r); err != nil {
		return err
	}
	if r.topology, err = p.topology(ctx, r.scan, m); err != nil {
		return err
	}
	if r.tables, err = p.edgeTables(ctx, r, m); err != nil {
		return err
	}
	if err := p.edgeSplits(ctx, r, m); err != nil {
		return err
	}
	if source.IsMade(p.opt.Features) {
		f, err := p.madeFeatures(ctx, m, r.topology)
		if err != nil {
			return err
		}
		r.features = append(r.features, f)
	}
	r.out, err = p.outTopology(ctx, r.topology, m)
	return err
}

// nodeTables writes the columns of tables of nodes.
func (p *pipeline) nodeTables(ctx context.Context, r *results) ([]*tables.Columns, error) {
	if !p.info.Ranged {
		return nil, nil
	}
	return tables.Nodes(ctx, p.Work, p.src, r.ids.Types, func(typ int,
		column string) (none kv.FeatureAt) {
		if len(r.features) != 1 {
			return none
		}
		of, info := r.features[0], p.info.Features[0]
		if info.OfTypes == nil || of.Meta.DType != rowfile.F32 || of.Scaled[typ] {
			return none
		}
		named := kv.NodeTypeMeta{Features: info.OfTypes[typ]}
		at, found := named.FeatureColumns().Index(column)
		if !found {
			return none
		}
		return kv.FeatureAt{Path: of.Meta.Path, First: p.firsts[typ], Column: at}
	})
}

// edgeTables writes the tables of edges.
func (p *pipeline) edgeTables(ctx context.Context, r *results, m *nodeMap) (*tables.EdgeTables,
	error) {
	if r.topology.Tables != nil { // edges carried their rows
		return r.topology.Tables, nil
	}
	return p.edgesOf(m).Write(ctx, r.scan.Rows, r.topology.Places)
}

// edgesOf returns what the tables of edges are written from.
func (p *pipeline) edgesOf(m *nodeMap) *tables.Edges {
	return &tables.Edges{Work: p.Work, Info: p.info, Nodes: m.nodes, First: p.firsts}
}

// results is what the steps found out, for the catalog.
type results struct {
	scan     *scanResult
	ids      *idsResult
	labels   *labelsResult
	splits   *splitsResult
	features []*featuresResult
	columns  []*tables.Columns // by type of nodes
	topology *topologyResult
	tables   *tables.EdgeTables
	divided  splits.EdgeResult
	out      *topologyResult
}
