package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/partition"
	"gdb/train/link/entities"
	"gdb/train/link/paged"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// diskConfig is a training with vectors on disk, half of which are in memory.
func diskConfig(decoder string) Config {
	c := circleConfig(decoder)
	c.Order, c.Partitions, c.PartitionsInMemory, c.LogicalPartitions = setting.OrderTwoLevel, 8, 4,
		4
	c.Batch = 12
	return c
}

// diskSettings are trainings with vectors on disk.
func diskSettings() map[string]Config {
	all := map[string]Config{"two-level": diskConfig("complex"), "one set": diskConfig("distmult"),
		"degree": diskConfig("distmult"), "beta": diskConfig("transe")}
	c := all["degree"]
	c.NegativeSampling, c.Optimizer, c.LR = setting.NegativesDegree, "adam", 0.01
	all["degree"] = c
	c = all["one set"]
	c.PartitionsInMemory, c.LogicalPartitions = 8, 1
	all["one set"] = c
	c = diskConfig("distmult")
	c.Encoder, c.Fanout = "sage", "3"
	all["sage"] = c
	c = all["beta"]
	c.Order, c.PartitionsInMemory, c.LogicalPartitions = setting.OrderBeta, 3, 8
	all["beta"] = c
	return all
}

// diskState is what a run came to: where it stands, and the bytes of its vectors and their state.
func diskState(t testing.TB, s *layout.Store, c *Config) (p position, vectors []byte) {
	t.Helper()
	dir := runs.Open(s, c.Run)
	for _, a := range mustState(t, dir, &p) {
		vectors = append(vectors, mem.BytesOf(a.Values)...)
	}
	for _, record := range [][]byte{p.Record, p.BestRecord} {
		if record == nil && c.Encodes() { // the best vectors are in the checkpoint
			continue
		}
		m, err := (&paged.Plan{Order: planned(t, s, c).Order}).Map(s.Meta())
		if err != nil {
			t.Fatal(err)
		}
		spec := entities.FileSpec{UUID: s.Meta().UUID, Map: m, Columns: c.Dim,
			State: len(runs.LinkState(c.Optimizer)), Init: initOf(c)}
		view, err := entities.ViewFiles(s.FS(), dir.Path(runs.PartitionsDir), mustDevice(t), spec,
			record)
		if err != nil {
			t.Fatal(err)
		}
		n := spec.FrameRows() * c.Dim
		all := mem.View[float32](blockdev.AlignedBuffer(int(spec.FrameBytes())))
		for part := range m.Parts() {
			pieces := [][]float32{}
			for i := range 1 + spec.State {
				pieces = append(pieces, all[i*n:(i+1)*n])
			}
			if _, err := view.Read(t.Context(), part, pieces); err != nil {
				t.Fatal(err)
			}
			for _, piece := range pieces {
				vectors = append(vectors, mem.BytesOf(piece[:int(m.Size(part))*c.Dim])...)
			}
		}
	}
	p.Record, p.BestRecord, p.Time, p.Wait = nil, nil, 0, 0
	return p, vectors
}

func planned(t testing.TB, s *layout.Store, c *Config) *paged.Plan {
	t.Helper()
	plan, err := MakePlan(c, s.Meta())
	if err != nil || plan == nil {
		t.Fatal(plan, err)
	}
	return plan
}

// sameDisk fails unless a run came to the same as another.
func sameDisk(t testing.TB, s, other *layout.Store, c, otherConfig *Config) {
	t.Helper()
	p, vectors := diskState(t, s, c)
	want, wantVectors := diskState(t, other, otherConfig)
	if fmt.Sprintf("%+v %v", p, *p.Test) != fmt.Sprintf("%+v %v", want, *want.Test) &&
		(p.Steps != want.Steps || p.Best != want.Best || p.Test.Metrics != want.Test.Metrics) {
		t.Errorf("%+v, want %+v", p, want)
	}
	if !bytes.Equal(vectors, wantVectors) {
		t.Error("the vectors differ")
	}
}

// TestDiskLearns: what is learned in memory is learned with vectors on disk too.
func TestDiskLearns(t *testing.T) {
	s := mustCircle(t, true)
	c := circleConfig("complex")
	c.Epochs = 120
	inMemory := mustRun(t, s, c)
	for _, held := range []int{8, 4} {
		c := diskConfig("complex")
		c.Epochs, c.Run, c.Batch = 120, fmt.Sprint("held", held), 24
		if c.PartitionsInMemory = held; held == 8 {
			c.LogicalPartitions = 1
		}
		res := mustRun(t, s, c)
		if math.Abs(res.Test.MRR-inMemory.Test.MRR) > 0.15 {
			t.Errorf("%d of 8 in memory: MRR %.3f, all in memory %.3f", held, res.Test.MRR,
				inMemory.Test.MRR)
		}
	}
}

// TestDiskResume: a run that is stopped every few batches ends with the bits of one that is not.
func TestDiskResume(t *testing.T) {
	for name, c := range diskSettings() {
		t.Run(name, func(t *testing.T) {
			s := mustCircle(t, true)
			c.Epochs, c.EvalEvery, c.Run = 3, 2, "whole"
			mustRun(t, s, c)
			whole := c
			c.Run = "parts"
			stopped := 0
			for ; ; stopped++ {
				ctx, cancel := context.WithCancel(context.Background())
				left := 4
				_, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
					if e.Progress != nil {
						if left--; left == 0 {
							cancel()
						}
					}
				})
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				c.Resume, c.Threads = c.Run, 1+stopped%3
			}
			if stopped < 3 {
				t.Fatalf("stopped %d times", stopped)
			}
			sameDisk(t, s, s, &c, &whole)
		})
	}
}

// resumeOrBegin goes on with a run, or begins it if it did not begin.
func resumeOrBegin(fs vfs.FS, dev blockdev.Device, c Config) error {
	s, err := layout.Open(context.Background(), fs, "kg.gdb")
	if err != nil {
		return err
	}
	if _, err := fs.Stat(s.Path("runs", c.Run, runs.FileName)); err == nil {
		c.Resume = c.Run
	}
	_, err = Run(context.Background(), s, dev, c, nil)
	return err
}

// changes counts the changes of a file system, and calls at before one of them.
type changes struct {
	mu      sync.Mutex
	n, stop int
	at      func() error
}

func (c *changes) inject(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n == c.stop {
		return c.at()
	}
	return nil
}

// faultConfig is a short training with all that is written.
func faultConfig() Config {
	c := diskConfig("complex")
	c.Epochs, c.EvalEvery, c.CheckpointEvery, c.Dim, c.Negatives = 2, 1, 3, 8, 5
	return c
}

// crashable is a store on a file system that can lose what is not synced.
func crashable(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if _, err := vfs.Clone(mustCircle(t, true).FS(), fs, "kg.gdb", "kg.gdb",
		vfs.CloneSync); err != nil {
		t.Fatal(err)
	}
	root, err := fs.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.Sync(), root.Close()); err != nil {
		t.Fatal(err)
	}
	return fs
}

// reference is what the run of faultConfig comes to, and how many changes it makes.
func reference(t testing.TB) (s *layout.Store, made int) {
	t.Helper()
	fs, c := crashable(t), &changes{}
	if err := resumeOrBegin(errorfs.Wrap(fs, errorfs.InjectorFunc(c.inject)), mustDevice(t),
		faultConfig()); err != nil {
		t.Fatal(err)
	}
	return mustOpen(t, fs), c.n
}

func mustOpen(t testing.TB, fs vfs.FS) *layout.Store {
	t.Helper()
	s, err := layout.Open(context.Background(), fs, "kg.gdb")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDiskKills: the power is lost at 30 moments of a training. What goes on comes to the same, and
// the disk never has more than what it may.
func TestDiskKills(t *testing.T) {
	want, made := reference(t)
	c := faultConfig()
	r := rand.New(rand.NewPCG(7, 7))
	for kill := range 30 {
		fs := crashable(t)
		var after *vfs.MemFS
		killer := &changes{stop: 1 + r.IntN(made)}
		killer.at = func() error {
			after = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
			return errors.New("killed")
		}
		if err := resumeOrBegin(errorfs.Wrap(fs, errorfs.InjectorFunc(killer.inject)),
			mustDevice(t), c); err == nil && after == nil {
			continue // how many checkpoints there are is for the clock to say
		}
		if err := resumeOrBegin(after, mustDevice(t), c); err != nil {
			t.Fatalf("kill %d at change %d: %v", kill, killer.stop, err)
		}
		sameDisk(t, mustOpen(t, after), want, &c, &c)
	}
}

// TestDiskFull: a disk that is full, or fails, at some moment is told as what it is. When there is
// room again the run goes on and comes to the same.
func TestDiskFull(t *testing.T) {
	want, made := reference(t)
	c := faultConfig()
	r := rand.New(rand.NewPCG(8, 8))
	for trial := range 20 {
		fs, cause := crashable(t), []error{syscall.ENOSPC, syscall.EIO}[trial%2]
		full := &changes{stop: 1 + r.IntN(made), at: func() error { return cause }}
		err := resumeOrBegin(errorfs.Wrap(fs, errorfs.InjectorFunc(full.inject)), mustDevice(t), c)
		if err != nil && !errors.Is(err, cause) {
			t.Errorf("trial %d at change %d: %v, want %v", trial, full.stop, err, cause)
		}
		if err := resumeOrBegin(fs, mustDevice(t), c); err != nil {
			t.Fatalf("trial %d at change %d: %v", trial, full.stop, err)
		}
		sameDisk(t, mustOpen(t, fs), want, &c, &c)
	}
}

// TestDiskBitFlips: a bit that is flipped in a file of vectors is found before they are used.
func TestDiskBitFlips(t *testing.T) {
	s := mustCircle(t, true)
	c := faultConfig()
	ctx, cancel := context.WithCancel(context.Background())
	left := 12
	if _, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
		if e.Progress != nil {
			if left--; left == 0 {
				cancel()
			}
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	dir := s.Path("runs", c.Run, runs.PartitionsDir)
	files, err := s.FS().List(dir)
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	c.Resume = c.Run
	for i, file := range files {
		fs := vfs.NewMem()
		if _, err := vfs.Clone(s.FS(), fs, "kg.gdb", "kg.gdb"); err != nil {
			t.Fatal(err)
		}
		path := fs.PathJoin(dir, file)
		layouttest.Flip(t, fs, path, 4096+int64(i), 4) // of the first vectors
		if _, err := Run(t.Context(), mustOpen(t, fs), mustDevice(t), c, nil); !errors.Is(err,
			layout.ErrCorrupt) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestDiskTrained: evaluation and predictions from disk equal those from the same
// vectors in memory.
func TestDiskTrained(t *testing.T) {
	s := mustCircle(t, true)
	c := diskConfig("complex")
	c.Epochs = 20
	note := ""
	run, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		if e.Started != nil {
			note = e.Started.Note
		}
	})
	if err != nil || !strings.Contains(note, "sorted into") {
		t.Fatalf("note %q does not say that edges were sorted into buckets (%v)", note, err)
	}
	trained, err := Open(t.Context(), s, mustDevice(t), c.Run, Limits{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := trained.Close(); err != nil {
			t.Error(err)
		}
	}()
	rows := make([]float32, circleEntities*c.Dim)
	all := make([]uint32, circleEntities)
	for i := range all {
		all[i] = uint32(i)
	}
	if err := trained.vectors.Table.Gather(t.Context(), rows, all); err != nil {
		t.Fatal(err)
	}
	inMemory := entities.InMemory(rows, c.Dim)
	d, err := readData(t.Context(), s, mustDevice(t), &c, &mem.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	for _, candidates := range []int{0, 7} {
		want, err := rank.Ranks(t.Context(), trained.vectors.Scorer(), inMemory, d.test,
			rank.Config{Known: entities.Indexed{Index: d.known}, Candidates: candidates,
				Seed: c.Seed})
		if err != nil {
			t.Fatal(err)
		}
		got, err := trained.Evaluate(t.Context(), "test", candidates)
		if err != nil {
			t.Fatal(err)
		}
		if got.Metrics != want.Metrics || got.Raw != want.Raw || got.Heads != want.Heads {
			t.Errorf("%d candidates: %+v, want %+v", candidates, got.Metrics, want.Metrics)
		}
		if candidates == 0 && got.Metrics != run.Test.Metrics {
			t.Errorf("%+v, the training had %+v", got.Metrics, run.Test.Metrics)
		}
	}
	sameAnswers(t, trained, inMemory, d)
}

// sameAnswers compares predictions from disk with those of vectors in memory.
func sameAnswers(t *testing.T, trained *Trained, inMemory *entities.Table, d *data) {
	t.Helper()
	for _, q := range []triples.Query{{Entity: 5, Relation: 2}, {Entity: 7, Head: true}} {
		for _, onlyNew := range []bool{false, true} {
			var known []uint32
			if onlyNew {
				known = d.known.Answers(q)
			}
			want, err := rank.Top(t.Context(), trained.vectors.Scorer(), inMemory, q, 10, known)
			if err != nil {
				t.Fatal(err)
			}
			got, err := trained.Top(t.Context(), q, 10, onlyNew)
			if err != nil || len(got) != len(want) {
				t.Fatal(got, err)
			}
			for i, l := range got {
				e := triples.Triple{Head: uint32(l.Head), Relation: q.Relation,
					Tail: uint32(l.Tail)}
				if l.Score != want[i].Score || l.Known != d.known.Has(e) {
					t.Errorf("%+v, want %+v", l, want[i])
				}
			}
		}
	}
	want := make([]float32, len(d.test))
	err := rank.Pairs(t.Context(), trained.vectors.Scorer(), inMemory, want, d.test, 0)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := trained.Scores(t.Context(), d.test)
	if err != nil || !slices.Equal(scores, want) {
		t.Errorf("%v, %v, want %v", scores, err, want)
	}
}

// TestDiskMemory: what is counted is what the plan says, and what does not fit is refused.
func TestDiskMemory(t *testing.T) {
	s := mustCircle(t, true)
	c := diskConfig("complex")
	for _, encoder := range []string{setting.EncoderNone, "sage"} {
		c.Memory, c.Epochs, c.EvalEvery, c.Encoder, c.Run = 160<<20, 2, 1, encoder, encoder
		plan := planned(t, s, &c)
		peak := int64(0)
		if _, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil {
				peak = max(peak, e.Epoch.(*runs.LinkEpoch).Held)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if plan.Bytes() > c.Memory || peak > plan.Bytes() {
			t.Errorf("encoder %s: planned %d of %d, held %d", encoder, plan.Bytes(), c.Memory,
				peak)
		}
	}
	c.Encoder = setting.EncoderNone
	c.Memory, c.Run = 57<<20, "small"
	if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err == nil ||
		!strings.Contains(err.Error(), "give more memory") {
		t.Errorf("in 57 MiB: %v", err)
	}
}

// TestDiskRefused: what vectors on disk cannot do is told in words.
func TestDiskRefused(t *testing.T) {
	s := mustCircle(t, true)
	for want, change := range map[string]func(c *Config){
		"give a number of --negatives": func(c *Config) { c.Negatives = setting.NegativesAll },
		"needs all edges in memory":    func(c *Config) { c.FilterNegatives = true },
		"are for nodes":                func(c *Config) { c.Order = "dispersed" },
		"no more than nodes":           func(c *Config) { c.Partitions = 100 },
		"more logical partitions":      func(c *Config) { c.LogicalPartitions = 2 },
		"partitions are of":            func(c *Config) { c.Order = setting.OrderMemory },
	} {
		c := diskConfig("complex")
		change(&c)
		if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestAuto: vectors go to disk if they do not fit, and not if they do.
func TestAuto(t *testing.T) {
	s := mustCircle(t, true)
	m := *s.Meta()
	m.Nodes = 4 << 20
	c := setting.DefaultLink("complex")
	c.Dim, c.Memory = 64, 16<<30
	if p, err := MakePlan(&c, &m); p != nil || err != nil || c.Order != setting.OrderMemory {
		t.Errorf("%+v, %v, order %s", p, err, c.Order)
	}
	c.Order, c.Memory = setting.OrderAuto, 512<<20
	p, err := MakePlan(&c, &m)
	if err != nil || c.Order != setting.OrderTwoLevel || c.PartitionsInMemory < 2 ||
		p.Bytes() > c.Memory {
		t.Errorf("%+v, %v, %+v", p, err, c)
	}
	again := c
	if _, err := MakePlan(&again, &m); err != nil || !reflect.DeepEqual(again, c) {
		t.Errorf("%+v, %v, want %+v", again, err, c)
	}
}

// TestBatchOf: batches shrink with the buffer where entities are in them often, and not elsewhere.
func TestBatchOf(t *testing.T) {
	for _, c := range []struct{ batch, entities, held, parts, want int }{
		{1024, 14541, 16, 64, 256}, {1024, 14541, 64, 64, 1024}, {1024, 14541, 8, 64, 128},
		{1000, 4 << 20, 48, 176, 1000}, {10000, 1_000_000, 10, 80, 3906}, {3, 30, 2, 30, 1},
	} {
		p := &paged.Plan{Order: partition.OrderSpec{Parts: c.parts, Capacity: c.held}}
		if got := batchOf(&Config{Learning: setting.Learning{Batch: c.batch}}, p,
			c.entities); got != c.want {
			t.Errorf("batches of %d with %d of %d partitions of %d entities, want %d", got, c.held,
				c.parts, c.entities, c.want)
		}
	}
}
