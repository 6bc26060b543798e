package rowcache_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
)

// The contract of rows: nodes go in, their rows come out, whatever holds them. A read that fails is
// the gather's error, and the next gather is right again; memory is given back.

const rowsNodes, rowsDim = 2000, 70

// openers are all ways to hold the rows of a file.
func openers() map[string]func(ctx context.Context, file *rowfile.Reader,
	b *mem.Budget) (rowcache.Features, error) {
	var hot []layout.NodeID
	for v := layout.NodeID(1); v < rowsNodes; v += 3 {
		hot = append(hot, v)
	}
	type opener = func(context.Context, *rowfile.Reader, *mem.Budget) (rowcache.Features, error)
	cached := func(policy func() rowcache.Policy, background bool) opener {
		return func(ctx context.Context, file *rowfile.Reader,
			b *mem.Budget) (rowcache.Features, error) {
			opt := rowcache.Options{Bytes: 120 << 10, Threads: 2, Budget: b}
			if background {
				opt.Sweep = file
			}
			return rowcache.New(ctx, file, policy(), opt)
		}
	}
	static := func() rowcache.Policy { return rowcache.NewStatic(hot) }
	return map[string]opener{
		"direct": func(_ context.Context, file *rowfile.Reader,
			_ *mem.Budget) (rowcache.Features, error) {
			return rowcache.NewDirect(file), nil
		},
		"resident": func(ctx context.Context, file *rowfile.Reader,
			b *mem.Budget) (rowcache.Features, error) {
			return rowcache.NewResident(ctx, file, rowsNodes, 2, b)
		},
		"static":                cached(static, false),
		"static, loaded beside": cached(static, true),
		"sieve":                 cached(rowcache.NewSIEVE, false),
		"static over staged": func(ctx context.Context, file *rowfile.Reader,
			b *mem.Budget) (rowcache.Features, error) {
			staged := rowcache.NewStaged(file, b)
			f, err := rowcache.New(ctx, staged, static(), rowcache.Options{Bytes: 120 << 10,
				Budget: b})
			if err == nil {
				err = staged.Stage(ctx, [][]layout.NodeID{{3, 900, 6}, {6, 1999}})
			}
			return stagedRows{f, staged}, err
		},
	}
}

// stagedRows drop the rows that are staged when they are closed.
type stagedRows struct {
	rowcache.Features
	staged *rowcache.Staged
}

func (s stagedRows) Close() error { return errors.Join(s.Features.Close(), s.staged.Drop()) }

// checkRows gathers rows of nodes from first on, some of them twice, and holds them against the
// values that were written.
func checkRows(t *testing.T, name string, f rowcache.Features, first int) {
	t.Helper()
	var nodes []layout.NodeID
	for i := range 300 {
		nodes = append(nodes, layout.NodeID((first+i*i*7)%rowsNodes))
	}
	nodes = append(nodes, nodes[17], nodes[3], rowsNodes-1, 0)
	out := make([]float32, len(nodes)*rowsDim)
	if err := f.Gather(t.Context(), nodes, out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i, v := range nodes {
		for j := range rowsDim {
			if got, want := out[i*rowsDim+j], sampletest.Value(v, j); got != want {
				t.Fatalf("%s: row %d, of node %d, value %d: %v, want %v", name, i, v, j, got, want)
			}
		}
	}
}

// TestRows: the right rows come from many goroutines, requests are counted, and nothing stays in
// the budget.
func TestRows(t *testing.T) {
	file := layouttest.FloatFile(t, nil, rowsDim, rowsNodes, sampletest.Value)
	for name, open := range openers() {
		budget := mem.NewBudget(0)
		f, err := open(t.Context(), file, budget)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if f.Dim() != rowsDim || f.Lent() != nil {
			t.Errorf("%s: rows of %d values, lent: %v", name, f.Dim(), f.Lent() != nil)
		}
		var all sync.WaitGroup
		for w := range 3 {
			all.Go(func() {
				for k := range 8 {
					checkRows(t, name, f, 97*w+k)
				}
			})
		}
		all.Wait()
		s := f.Stats()
		if s.Requests != 3*8*304 || s.Hits > s.Requests || s.Used > s.Capacity {
			t.Errorf("%s: %+v", name, s)
		}
		if err := f.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%s: closed: %v, %d bytes are counted", name, err, budget.Used())
		}
	}
}

// TestRowsFail: reads that fail are the error of a gather, which says where; afterwards rows are
// right.
func TestRowsFail(t *testing.T) {
	var mu sync.Mutex
	var fail error
	set := func(err error) { mu.Lock(); fail = err; mu.Unlock() }
	dev := devtest.Inject(layouttest.Device(t), func(string, int64, uint64) devtest.Fault {
		mu.Lock()
		defer mu.Unlock()
		return devtest.Fault{Err: fail}
	})
	file := layouttest.FloatFile(t, dev, rowsDim, rowsNodes, sampletest.Value)
	for name, open := range openers() {
		if name == "static, loaded beside" {
			continue // its first failure stays: see TestBackgroundFails
		}
		budget := mem.NewBudget(0)
		f, err := open(t.Context(), file, budget)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		set(syscall.EIO)
		err = f.Gather(t.Context(), []layout.NodeID{2, 5, 1500}, make([]float32, 3*rowsDim))
		var read *blockdev.ReadError
		if name != "resident" && (!errors.As(err, &read) || !errors.Is(err, syscall.EIO) ||
			!strings.Contains(err.Error(), "rows")) {
			t.Errorf("%s: a read fails: %v", name, err)
		}
		set(nil)
		checkRows(t, name, f, 2)
		set(syscall.EIO)
		if name == "resident" || name == "static" { // these read when they are opened
			if _, err := open(t.Context(), file, budget); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: opened where reads fail: %v", name, err)
			}
		}
		set(nil)
		if err := f.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%s: closed: %v, %d bytes are counted", name, err, budget.Used())
		}
	}
}

// TestRowsAreCancelled: a context that has ended is the error of a gather.
func TestRowsAreCancelled(t *testing.T) {
	file := layouttest.FloatFile(t, nil, rowsDim, rowsNodes, sampletest.Value)
	for name, open := range openers() {
		f, err := open(t.Context(), file, mem.NewBudget(0))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = f.Gather(ctx, []layout.NodeID{2, 5, 1500}, make([]float32, 3*rowsDim))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		checkRows(t, name, f, 5)
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRowsDoNotFit: rows that have no place are an error that says so, and nothing stays counted.
func TestRowsDoNotFit(t *testing.T) {
	file := layouttest.FloatFile(t, nil, rowsDim, rowsNodes, sampletest.Value)
	for name, open := range openers() {
		if name == "direct" {
			continue // it takes no memory
		}
		budget := mem.NewBudget(100 << 10)
		_, err := open(t.Context(), file, budget)
		var full *mem.LimitError
		if !errors.As(err, &full) || budget.Used() != 0 {
			t.Errorf("%s: %v, %d bytes are counted", name, err, budget.Used())
		}
	}
}

// TestLentRows: rows that are lent are those that are gathered.
func TestLentRows(t *testing.T) {
	file := layouttest.FloatFile(t, nil, rowsDim, rowsNodes, sampletest.Value)
	f, err := rowcache.NewResident(t.Context(), file, rowsNodes, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Lend()
	out := make([]float32, 2*rowsDim)
	if err := f.Gather(t.Context(), []layout.NodeID{7, 1999}, out); err != nil {
		t.Fatal(err)
	}
	lent := f.Lent()
	if len(lent) != rowsNodes*rowsDim || !slices.Equal(lent[7*rowsDim:8*rowsDim], out[:rowsDim]) ||
		!slices.Equal(lent[1999*rowsDim:], out[rowsDim:]) {
		t.Errorf("%d values are lent, or others than are gathered", len(lent))
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
