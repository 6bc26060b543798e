package ivf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// planted are n vectors around some centers, drawn by a seed.
func planted(n, dim, centers int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	middles := make([]float32, centers*dim)
	for i := range middles {
		middles[i] = 2 * float32(r.NormFloat64())
	}
	x := make([]float32, n*dim)
	for i := range n {
		c := r.IntN(centers)
		for j := range dim {
			x[i*dim+j] = middles[c*dim+j] + float32(r.NormFloat64())
		}
	}
	return x
}

// rowsOf hands out vectors in memory, 1000 at a time.
func rowsOf(x []float32, dim int) Rows {
	n := len(x) / dim
	return Rows{Count: n, Dim: dim, Each: func(_ context.Context,
		fn func(nodes []uint32, rows []float32) error) error {
		for lo := 0; lo < n; lo += 1000 {
			var nodes []uint32
			for v := lo; v < min(lo+1000, n); v++ {
				nodes = append(nodes, uint32(v))
			}
			if err := fn(nodes, slices.Clone(x[lo*dim:min(lo+1000, n)*dim])); err != nil {
				return err
			}
		}
		return nil
	}}
}

// maker makes indexes in a store of its own.
type maker struct {
	fs *vfs.MemFS
	Options
}

func newMaker(t testing.TB, by string) *maker {
	fs := vfs.NewMem()
	st := layouttest.Build(t, fs, "s.gdb", layouttest.Random(1, 8, 16))
	return &maker{fs, Options{Place: Place{st, layouttest.Device(t), "prep/vectors.ivf", "a test"},
		Budget: mem.NewBudget(256 << 20), By: by, Recall: 0.95, Threads: 2, Seed: 1}}
}

func (m *maker) build(t testing.TB, x []float32, dim int) Made {
	t.Helper()
	made, err := Build(t.Context(), rowsOf(x, dim), m.Options)
	if err != nil {
		t.Fatal(err)
	}
	if used := m.Budget.Used(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
	return made
}

func (m *maker) open(t testing.TB) *Index {
	t.Helper()
	x, err := Open(t.Context(), m.Place, m.Budget, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// closeness is the definition, in float64.
func closeness(by string, a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	switch by {
	case Dot:
		return dot
	case Euclid:
		return -(aa + bb - 2*dot)
	}
	return dot / math.Sqrt(aa*bb)
}

// exact returns the n nodes that are closest to a node, by definition.
func exact(by string, x []float32, dim, node, n int) []uint32 {
	row := func(i int) []float32 { return x[i*dim : (i+1)*dim] }
	var all closest
	all.reset(n)
	for i := range len(x) / dim {
		if i != node {
			all.add(scored{score: float32(closeness(by, row(node), row(i))), id: uint32(i)})
		}
	}
	var nodes []uint32
	for _, s := range all.sort() {
		nodes = append(nodes, s.id)
	}
	return nodes
}

// TestRecall: what is found among planted clusters is what the tuning says, for each way to
// compare.
func TestRecall(t *testing.T) {
	const n, dim, asked = 10000, 24, 60
	x := planted(n, dim, 40, 3)
	for _, by := range Closenesses() {
		m := newMaker(t, by)
		made := m.build(t, x, dim)
		if made.Recall < 0.95 || made.Vectors != n || made.Lists < 64 ||
			made.Probes > made.Lists/2 {
			t.Errorf("%s: %+v", by, made)
		}
		index, found := m.open(t), 0
		for q := range asked {
			node := q * 163
			got, err := index.Candidates(t.Context(), Query{Row: x[node*dim:][:dim],
				Probes: made.Probes, Most: made.Candidates(Answers) + 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range exact(by, x, dim, node, Answers) {
				if slices.ContainsFunc(got, func(c Candidate) bool { return c.Node == want }) {
					found++
				}
			}
		}
		if recall := float64(found) / (asked * Answers); recall < 0.9 {
			t.Errorf("%s: recall %.3f, measured was %.3f", by, recall, made.Recall)
		}
		if err := index.Check(t.Context(), index.Vectors); err != nil {
			t.Error(err)
		}
	}
}

// TestAllLists: a search of all lists with as many candidates as vectors finds each once, and one
// that allows some finds these.
func TestAllLists(t *testing.T) {
	for _, n := range []int{1, 2, 31, 33, 500, 3000} {
		const dim = 5
		x := planted(n, dim, 3, 9)
		m := newMaker(t, Euclid)
		m.Sums = true
		m.build(t, x, dim)
		index := m.open(t)
		for _, share := range []uint32{1, 3} {
			got, err := index.Candidates(t.Context(), Query{Row: x[:dim], Probes: 1 << 20, Most: n,
				Allow: func(node uint32) bool { return node%share == 0 }})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[uint32]bool{}
			for _, c := range got {
				want := codec.Checksum(mem.BytesOf(x[int(c.Node)*dim:][:dim]))
				if seen[c.Node] || c.Node%share != 0 || c.Sum != want {
					t.Errorf("%d vectors: node %d, sum %08x, want %08x", n, c.Node, c.Sum, want)
				}
				seen[c.Node] = true
			}
			if want := (n-1)/int(share) + 1; len(seen) != want {
				t.Errorf("%d vectors: %d are found, want %d", n, len(seen), want)
			}
		}
	}
}

// TestAlike: vectors that are all alike, zeros, or no numbers make an index too.
func TestAlike(t *testing.T) {
	const n, dim = 2000, 3
	for _, value := range []float32{0, 1, float32(math.NaN()), float32(math.Inf(1))} {
		x := slices.Repeat([]float32{value}, n*dim)
		for _, by := range Closenesses() {
			m := newMaker(t, by)
			m.build(t, x, dim)
			index := m.open(t)
			got, err := index.Candidates(t.Context(), Query{Row: x[:dim], Probes: 4, Most: 5})
			if err != nil || value == value && value-value == 0 && len(got) == 0 {
				t.Errorf("%v %s: %v, %v", value, by, got, err)
			}
		}
	}
}

// TestSameFile: the bytes of the file and the tuning depend on neither threads nor memory, and they
// do on the seed.
func TestSameFile(t *testing.T) {
	const n, dim = 9000, 16
	x := planted(n, dim, 20, 5)
	var file []byte
	var first Made
	for i, c := range []struct {
		threads int
		memory  int64
		seed    uint64
	}{{1, 256 << 20, 1}, {3, 256 << 20, 1}, {2, 24 << 20, 1}, {2, 256 << 20, 2}} {
		m := newMaker(t, Cosine)
		m.Threads, m.Budget, m.Seed = c.threads, mem.NewBudget(c.memory), c.seed
		made := m.build(t, x, dim)
		b := layouttest.ReadFile(t, m.fs, m.Store.Path(m.Path))
		b = slices.Clone(b)
		// Stores of tests have an id each; it is in the header and in all checksums.
		uuid := m.Store.Meta().UUID
		b = bytes.ReplaceAll(b, uuid[:], make([]byte, 16))
		if i == 0 {
			file, first = b, made
			continue
		}
		if same := slices.Equal(withoutSums(b), withoutSums(file)) && made == first; same !=
			(c.seed == 1) {
			t.Errorf("%+v: same is %v, %+v, %+v", c, same, made, first)
		}
		if made.Bytes != int64(len(b)) {
			t.Errorf("the file has %d bytes, and should have %d", len(b), made.Bytes)
		}
		if peak := m.Budget.Peak(); peak > c.memory {
			t.Errorf("%d bytes were taken of %d", peak, c.memory)
		}
	}
}

// withoutSums clears the checksum that each page and block begins with.
func withoutSums(b []byte) []byte {
	for at := 0; at < len(b); at += layout.PageBytes {
		clear(b[at : at+4])
	}
	return b
}

// TestMemory: too little memory is an error that names it, and leaves no file.
func TestMemory(t *testing.T) {
	m := newMaker(t, Cosine)
	m.Budget = mem.NewBudget(1 << 20)
	_, err := Build(t.Context(), rowsOf(planted(9000, 16, 20, 5), 16), m.Options)
	var short *mem.LimitError
	if !errors.As(err, &short) {
		t.Errorf("error %v", err)
	}
	m.nothingLeft(t)
}

func (m *maker) nothingLeft(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"prep", "tmp/index"} {
		names, err := m.fs.List(m.Store.Path(dir))
		if err == nil && len(names) > 0 {
			t.Errorf("%s has %v", dir, names)
		}
	}
	if used := m.Budget.Used(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// TestInterrupted ends the work at each stage: nothing is left, and an index that was there stays.
func TestInterrupted(t *testing.T) {
	const dim = 8
	x := planted(9000, dim, 20, 5)
	for _, at := range []string{"reading a sample", "learning centers", "coding",
		"writing lists", "measuring"} {
		m := newMaker(t, Cosine)
		ctx, stop := context.WithCancel(t.Context())
		m.Progress = func(stage string, _ float64) {
			if stage == at {
				stop()
			}
		}
		if _, err := Build(ctx, rowsOf(x, dim), m.Options); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", at, err)
		}
		m.nothingLeft(t)
		stop()
	}
}

// TestDamage flips a bit of each page and block, and cuts the file off: opening, checking or
// searching names the file.
func TestDamage(t *testing.T) {
	const n, dim = 1500, 8
	x := planted(n, dim, 5, 5)
	m := newMaker(t, Euclid)
	made := m.build(t, x, dim)
	path := m.Store.Path(m.Path)
	whole := slices.Clone(layouttest.ReadFile(t, m.fs, path))
	try := func() error {
		index, err := Open(t.Context(), m.Place, m.Budget, 1<<30)
		if err != nil {
			return err
		}
		defer func() {
			if err := index.Close(); err != nil {
				t.Error(err)
			}
		}()
		_, searched := index.Candidates(t.Context(), Query{Row: x[:dim], Probes: 1 << 20, Most: 9})
		checked := index.Check(t.Context(), index.Vectors)
		if (checked == nil) != (searched == nil) {
			t.Errorf("a search says %v, a check %v", searched, checked)
		}
		return searched
	}
	if err := try(); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for at := int64(0); at < made.Bytes; at += layout.PageBytes {
		off := at + r.Int64N(layout.PageBytes)
		layouttest.Flip(t, m.fs, path, off, 1<<r.IntN(8))
		if err := try(); !errors.Is(err, layout.ErrCorrupt) ||
			!strings.Contains(fmt.Sprint(err), m.Path) {
			t.Errorf("a flipped bit at %d: %v", off, err)
		}
		layouttest.WriteFile(t, m.fs, path, whole)
	}
	layouttest.WriteFile(t, m.fs, path, whole[:len(whole)-blockBytes])
	if err := try(); !errors.Is(err, layout.ErrCorrupt) {
		t.Errorf("a file that is cut off: %v", err)
	}
	layouttest.WriteFile(t, m.fs, path, whole)
	m.Of = "others"
	if _, err := Open(t.Context(), m.Place, m.Budget, 1<<30); !errors.Is(err, layout.ErrCorrupt) {
		t.Errorf("an index of other vectors: %v", err)
	}
}

// TestSmallCache: searches at the same time find the same with a cache of few blocks as with one of
// all.
func TestSmallCache(t *testing.T) {
	const n, dim = 20000, 256
	x := planted(n, dim, 50, 5)
	m := newMaker(t, Cosine)
	made := m.build(t, x, dim)
	whole := m.open(t)
	small, err := Open(t.Context(), m.Place, m.Budget, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := small.Close(); err != nil {
			t.Error(err)
		}
	}()
	if small.blocks.Len() >= int(small.shape.blocks()) {
		t.Fatalf("%d frames for %d blocks", small.blocks.Len(), small.shape.blocks())
	}
	errs := make(chan error, 20)
	for q := range cap(errs) {
		go func() {
			ask := Query{Row: x[q*991*dim:][:dim], Probes: 2 * made.Probes, Most: 50}
			want, err := whole.Candidates(t.Context(), ask)
			got, err2 := small.Candidates(t.Context(), ask)
			if err == nil && err2 == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("query %d: %v, want %v", q, got, want)
			}
			errs <- errors.Join(err, err2)
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// FuzzFields decodes header fields; what it takes encodes to the same bytes.
func FuzzFields(f *testing.F) {
	s := shape{Groups: 3, Lists: 9, Vectors: 100, CodeGroups: 12, Sums: true, By: Dot, Of: "x"}
	s.Shape.Dim = 8
	f.Add(s.fields())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeFields(b)
		if err == nil && !bytes.Equal(s.fields(), b) {
			t.Fatalf("%x decodes to %+v", b, s)
		}
	})
}

// stuckDevice fails the first batch of reads, once failing is closed.
type stuckDevice struct {
	blockdev.Device
	first          sync.Once
	begun, failing chan struct{}
}

func (d *stuckDevice) ReadBatch(ctx context.Context, reads []blockdev.Request) (err error) {
	d.first.Do(func() {
		close(d.begun)
		<-d.failing
		err = context.Canceled
	})
	if err != nil {
		return err
	}
	return d.Device.ReadBatch(ctx, reads)
}

// TestReadOfAnotherSearch: a search that waits for blocks which another one reads, and fails to
// read, reads them itself.
func TestReadOfAnotherSearch(t *testing.T) {
	const dim = 8
	rows := planted(3000, dim, 20, 5)
	m := newMaker(t, Euclid)
	m.build(t, rows, dim)
	x := m.open(t)
	dev := &stuckDevice{Device: x.file.Dev, begun: make(chan struct{}),
		failing: make(chan struct{})}
	x.file.Dev = dev
	ask := func() error {
		_, err := x.Candidates(t.Context(), Query{Row: rows[:dim], Probes: 4, Most: 10})
		return err
	}
	first, second := make(chan error), make(chan error)
	go func() { first <- ask() }()
	<-dev.begun
	go func() { second <- ask() }()
	time.Sleep(20 * time.Millisecond) // so that it waits for the first
	close(dev.failing)
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first search: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the second search: %v", err)
	}
}
