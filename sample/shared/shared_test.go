package shared

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/testgraph"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/topology"
	"gdb/sample/loader"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// open returns a loader of batches of Cora, and its source.
func open(t *testing.T) (*loader.Loader, *loader.Source) {
	t.Helper()
	fs, ctx := vfs.NewMem(), t.Context()
	if err := testgraph.WriteCora(fs, "cora"); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Run(ctx, fs,
		ingest.Options{Options: source.Options{Sources: []string{"cora"}, Memory: 256 << 20},
			Out: "cora.gdb", Undirected: true}); err != nil {
		t.Fatal(err)
	}
	store, err := layout.Open(ctx, fs, "cora.gdb")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	src := loader.NewSource(store, dev, mem.NewBudget(256<<20))
	seeds, err := loader.TrainNodes(ctx, store, "", src.Budget)
	err = errors.Join(err, src.OpenGraph(ctx, topology.Options{Resident: true, Budget: src.Budget}),
		src.OpenRows(ctx), src.OpenLabels(ctx),
		src.OpenFeatures(ctx, loader.Cache{Policy: "all", Threads: 1}))
	if err != nil {
		t.Fatal(err)
	}
	l := loader.New(src, loader.Config{Seeds: seeds, Batch: 20, Fanout: []int{5, 5}, Seed: 1,
		Workers: 1, Ready: 1})
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), src.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return l, src
}

// taken takes at most some batches of an epoch, and returns what it saw of them.
func taken(ctx context.Context, e *loader.Epoch, most int) (seen []string, err error) {
	for range most {
		b, err := e.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		sum := float32(0)
		for _, x := range b.X {
			sum += x
		}
		if b.Table != nil {
			for _, at := range b.TableRows {
				sum += b.Table[int(at)*b.Dim]
			}
		}
		seen = append(seen, fmt.Sprint(b.Epoch, b.Index, b.Seeds, b.Dense.NodeIDs, b.Labels, sum))
		b.Release()
	}
	return seen, nil
}

// all is more batches than an epoch has.
const all = 1 << 20

// TestMembersSeeTheSame: all members get the batches of an epoch, which are gathered once.
func TestMembersSeeTheSame(t *testing.T) {
	l, src := open(t)
	e, err := l.Epoch(t.Context(), 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	want, err := taken(t.Context(), e, all)
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	before := src.Features.Stats().Requests
	g := New(l)
	var done sync.WaitGroup
	for _, m := range []*Member{g.Join(), g.Join(), g.Join()} {
		done.Go(func() {
			defer m.Leave()
			e, err := m.Epoch(t.Context(), 3, 1)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := taken(t.Context(), e, all)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d batches, want %d, %v", len(got), len(want), err)
			}
			var sums loader.Sums
			if e.Lap(&sums); sums.Stages[len(sums.Stages)-1].Done == 0 {
				t.Error("no step is counted")
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if n := src.Features.Stats().Requests - before; n != before {
		t.Errorf("%d rows were gathered for three, %d for one", n, before)
	}
}

// TestMembersComeTogether: members that stand at different places wait for those behind them, also
// if one leaves in the middle of an epoch.
func TestMembersComeTogether(t *testing.T) {
	l, _ := open(t)
	g := New(l)
	var mu sync.Mutex
	var order []string
	var done sync.WaitGroup
	members := []*Member{g.Join(), g.Join(), g.Join(), g.Join()}
	for i, begin := range []place{{0, 2}, {0, 2}, {1, 0}, {2, 0}} {
		m := members[i]
		done.Go(func() {
			defer m.Leave()
			for at := begin; at.epoch < 3; at = (place{at.epoch + 1, 0}) {
				e, err := m.Epoch(t.Context(), at.epoch, at.first)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, fmt.Sprint(at.epoch, " ", i))
				mu.Unlock()
				most := all
				if i == 1 && at.epoch == 1 {
					most = 2
				}
				if _, err := taken(t.Context(), e, most); err != nil {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if most != all {
					return
				}
				finish := m.Alone()
				g.mu.Lock()
				if g.epoch != nil {
					t.Error("an epoch is open while a member is alone")
				}
				g.mu.Unlock()
				finish()
			}
		})
	}
	done.Wait()
	slices.Sort(order[:2])
	slices.Sort(order[2:5])
	slices.Sort(order[5:])
	want := []string{"0 0", "0 1", "1 0", "1 1", "1 2", "2 0", "2 2", "2 3"}
	if !slices.Equal(order, want) {
		t.Errorf("epochs began in the order %v, want %v", order, want)
	}
}

// TestTable: a member with a table reads rows there, and others have copies of the same batch.
func TestTable(t *testing.T) {
	l, src := open(t)
	g := New(l)
	m := g.Join()
	defer m.Leave()
	m.Table = src.Resident.Table()
	e, err := m.Epoch(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	b, err := e.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	inner := len(b.Dense.NodeIDs) - int(b.Dense.NodeIDOffsets[1])
	if len(b.X) != inner*b.Dim || len(b.TableRows) != len(b.Dense.Nbrs) {
		t.Errorf("%d values of %d nodes, %d rows of %d", len(b.X), inner, len(b.TableRows),
			len(b.Dense.Nbrs))
	}
	first := int(b.Dense.NodeIDs[b.Dense.NodeIDOffsets[1]]) * b.Dim
	if !slices.Equal(b.X[:b.Dim], m.Table[first:first+b.Dim]) {
		t.Error("the first row is not that of the first inner node")
	}
}

// TestErrors: an epoch that cannot begin is an error for each, and who has left gets none.
func TestErrors(t *testing.T) {
	l, _ := open(t)
	g := New(l)
	var done sync.WaitGroup
	for _, m := range []*Member{g.Join(), g.Join()} {
		done.Go(func() {
			if _, err := m.Epoch(t.Context(), 0, 1<<30); err == nil {
				t.Error("an epoch begins behind its end")
			}
			m.Leave()
			if _, err := m.Epoch(t.Context(), 0, 0); !errors.Is(err, ErrLeft) {
				t.Errorf("after it left: %v", err)
			}
		})
	}
	done.Wait()
}

// TestBeginnerStops: the others get all batches of an epoch whose beginner is cancelled and leaves.
func TestBeginnerStops(t *testing.T) {
	l, _ := open(t)
	for first := range 2 { // whoever asks last begins the epoch
		g := New(l)
		members := []*Member{g.Join(), g.Join()}
		within, stop := context.WithCancel(t.Context())
		t.Cleanup(stop)
		var begun, done sync.WaitGroup
		begun.Add(1)
		for i, m := range members {
			done.Go(func() {
				defer m.Leave()
				ctx := t.Context()
				if i == first {
					ctx = within
				}
				e, err := m.Epoch(ctx, 0, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if i == first {
					_, err = taken(ctx, e, 1)
					stop()
					begun.Done()
				} else {
					var got []string
					if got, err = taken(ctx, e, 1); err == nil {
						begun.Wait()
						var rest []string
						rest, err = taken(ctx, e, all)
						got = append(got, rest...)
					}
					if err == nil && len(got) != 7 {
						t.Errorf("%d batches", len(got))
					}
				}
				if err := errors.Join(err, e.Close()); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	}
}
