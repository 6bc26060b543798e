package gdb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gdb"
	"gdb/internal/mem"
	"gdb/internal/testgraph"
	"gdb/kv"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustCora(t *testing.T) (store string) {
	t.Helper()
	dir := t.TempDir()
	if err := testgraph.WriteCora(vfs.Default, filepath.Join(dir, "cora")); err != nil {
		t.Fatal(err)
	}
	store = filepath.Join(dir, "s")
	_, err := gdb.Ingest(t.Context(),
		ingest.Options{Options: source.Options{Sources: []string{filepath.Join(dir, "cora")},
			Memory: 256 << 20}, Out: store, Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func mustOpen(t *testing.T, store string) *gdb.DB {
	t.Helper()
	db, err := gdb.Open(t.Context(), store, gdb.Options{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// readings are what one reader asks, by every method.
var readings = []func(ctx context.Context, db *gdb.DB, n kv.NodeID) (string, error){
	func(ctx context.Context, db *gdb.DB, n kv.NodeID) (string, error) {
		d, err := db.Sample(ctx, []kv.NodeID{n, n + 1}, []int{5, 3}, 7, 1, uint64(n))
		if err != nil {
			return "", err
		}
		return fmt.Sprint(d.NodeIDs, d.Nbrs), nil
	},
	func(ctx context.Context, db *gdb.DB, n kv.NodeID) (string, error) {
		rows, dim, err := db.Features(ctx, []kv.NodeID{n, n + 100})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(rows[:dim]), nil
	},
	func(ctx context.Context, db *gdb.DB, n kv.NodeID) (string, error) {
		v, err := db.Node(ctx, fmt.Sprint(n))
		return fmt.Sprint(v), err
	},
	func(ctx context.Context, db *gdb.DB, n kv.NodeID) (string, error) {
		names, err := db.External(ctx, []kv.NodeID{n, 0, n + 9})
		return fmt.Sprint(names), err
	},
	func(ctx context.Context, db *gdb.DB, n kv.NodeID) (string, error) {
		l, err := db.Labels(ctx, []kv.NodeID{n, 0})
		return fmt.Sprint(l), err
	},
	query("NEIGHBORS #%d HOPS 3"), query("NEIGHBORS #%d BOTH COUNT"), query("PATH #%d TO #7 MAX 9"),
	query("DEGREES OF #%d,3"), query("DEGREES TOP %d"), query("FEATURES #%d STATS"),
	query("LABELS #%d,1"), query("SAMPLE #%d FANOUT 4,4 SHOW dense"),
	query("MATCH (a {id: #%d})-[]-(b)-[]-(c) RETURN c, count(*) ORDER BY c"),
	query("NEIGHBORS 5 LIMIT %d"), query("DESCRIBE FILES"), query("STATS BUCKETS"),
}

// query runs a statement about a node; its rows are the reading, or its error.
func query(format string) func(context.Context, *gdb.DB, kv.NodeID) (string, error) {
	return func(ctx context.Context, db *gdb.DB, n kv.NodeID) (string, error) {
		stmt := format
		if strings.Contains(format, "%") {
			stmt = fmt.Sprintf(format, n)
		}
		r, err := db.Query(ctx, stmt, nil)
		if errors.Is(err, gdb.ErrClosed) {
			return "", err
		}
		if err != nil {
			return err.Error(), nil
		}
		return fmt.Sprint(r.Columns, r.Rows), nil
	}
}

// TestConcurrentReaders holds that every method of one store may be called at the same time: the
// answers equal those of one call after the other.
func TestConcurrentReaders(t *testing.T) {
	const nodes, readers = 5, 8
	store := mustCora(t)
	want := map[[2]int]string{}
	alone := mustOpen(t, store)
	for i, read := range readings {
		for n := 1; n <= nodes; n++ {
			got, err := read(t.Context(), alone, kv.NodeID(n*97))
			if err != nil {
				t.Fatal(err)
			}
			want[[2]int{i, n}] = got
		}
	}
	db := mustOpen(t, store) // nothing of it is open yet
	var wait sync.WaitGroup
	for reader := range readers {
		wait.Go(func() {
			for k := range len(readings) * nodes {
				k = (k*5 + reader*31) % (len(readings) * nodes)
				i, n := k%len(readings), k/len(readings)+1
				got, err := readings[i](t.Context(), db, kv.NodeID(n*97))
				if err != nil || got != want[[2]int{i, n}] {
					t.Errorf("reading %d of node %d: %v, got %.300s, want %.300s", i, n, err, got,
						want[[2]int{i, n}])
				}
				_, _ = db.Stats(), db.Meta()
			}
		})
	}
	wait.Wait()
}

// TestOneBlockCache holds that statements read through the cache that the methods of the store
// fill, and that STATS CACHE tells its size.
func TestOneBlockCache(t *testing.T) {
	db := mustOpen(t, mustCora(t))
	if _, err := db.Sample(t.Context(), []kv.NodeID{7}, []int{5, 5}, 1, 0, 0); err != nil {
		t.Fatal(err)
	}
	before := db.Stats()
	answer, err := db.Query(t.Context(), "SAMPLE #7 FANOUT 5,5 SEED 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	after := db.Stats()
	if answer.Stats.Read != 0 || after.Topology.Hits == before.Topology.Hits {
		t.Errorf("%d reads for blocks that are cached: %+v, then %+v", answer.Stats.Read,
			before.Topology, after.Topology)
	}
	answer, err = db.Query(t.Context(), "STATS CACHE BY policy", nil)
	if err != nil || len(answer.Rows) == 0 {
		t.Fatalf("%v, %v", answer, err)
	}
	if capacity := answer.Rows[0][3]; capacity != int64(64<<20/4) {
		t.Errorf("a capacity of %v bytes, not a quarter of the memory", capacity)
	}
}

// TestCloseBesideReaders: Close waits for the methods under way, whose answers are right, and those
// that come later fail with ErrClosed and nothing else.
func TestCloseBesideReaders(t *testing.T) {
	const readers = 50
	store := mustCora(t)
	want, alone := map[int]string{}, mustOpen(t, store)
	for i, read := range readings {
		got, err := read(t.Context(), alone, 97)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = got
	}
	for round := range 3 {
		db := mustOpen(t, store) // it closes again at the end, which does nothing
		var wait, begun sync.WaitGroup
		begun.Add(readers)
		for reader := range readers {
			wait.Go(func() {
				begun.Done()
				for k := reader; ; k++ {
					i := k % len(readings)
					got, err := readings[i](t.Context(), db, 97)
					_, _ = db.Stats(), db.Meta()
					if errors.Is(err, gdb.ErrClosed) {
						return
					}
					if err != nil || got != want[i] {
						t.Errorf("reading %d beside Close: %v, got %.300s, want %.300s", i, err,
							got, want[i])
						return
					}
				}
			})
		}
		begun.Wait()
		for range round * 10 { // some have read meanwhile
			if _, err := db.Node(t.Context(), "5"); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		if _, err := db.Node(t.Context(), "5"); !errors.Is(err, gdb.ErrClosed) {
			t.Errorf("a closed store answers: %v", err)
		}
		if st := db.Stats(); st != db.Stats() || st.IO.Bytes == 0 {
			t.Errorf("counters of a closed store: %+v", st)
		}
	}
}

// TestAnswersWithinMemory: rows that do not fit in the memory of the store are an error.
func TestAnswersWithinMemory(t *testing.T) {
	db, err := gdb.Open(t.Context(), mustCora(t), gdb.Options{Memory: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var full *mem.LimitError
	if _, _, err := db.Features(t.Context(), make([]kv.NodeID, 100_000)); !errors.As(err, &full) {
		t.Errorf("features: %v", err)
	}
	if _, err := db.Labels(t.Context(), make([]kv.NodeID, 5_000_000)); !errors.As(err, &full) {
		t.Errorf("labels: %v", err)
	}
	for range 20 { // what was counted is given back
		if _, _, err := db.Features(t.Context(), make([]kv.NodeID, 100)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Labels(t.Context(), make([]kv.NodeID, 1_000_000)); err != nil {
			t.Fatal(err)
		}
	}
}
