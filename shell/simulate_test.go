package shell

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/cachesim"
	"gdb/sample/rowcache"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/query"
	"gdb/shell/result"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const simulatedDim = 6

// simulatedGraph is large enough that caches of its features differ.
func simulatedGraph() layouttest.Graph {
	g := layouttest.Random(11, 900, 7000)
	g.Dim, g.Features = simulatedDim, layouttest.Features(g.Nodes, simulatedDim)
	g.Splits = layouttest.Splits(g.Nodes)
	return g
}

// sampledBatches are the nodes of the batches of epochs, drawn without the shell.
func sampledBatches(t *testing.T, store *layout.Store, fanout []int, batch int, seed uint64,
	epochs ...uint64) (out [][]sample.NodeID) {
	t.Helper()
	topo, err := topology.Open(t.Context(), store, mustDevice(t), layout.In,
		topology.Options{Resident: true})
	if err != nil {
		t.Fatal(err)
	}
	defer topo.Close()
	s, err := sample.NewSampler([]topology.Reader{topo}, sample.Config{Fanout: fanout, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	set, err := store.Split(t.Context(), "train")
	if err != nil {
		t.Fatal(err)
	}
	for _, epoch := range epochs {
		order, err := sample.EpochOrder(mem.View[sample.NodeID](mem.BytesOf(set.ToArray())), seed,
			epoch, batch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range order.Batches() {
			var d sample.Dense
			if err := s.Sample(t.Context(), epoch, i, order.Seeds(i, nil), &d); err != nil {
				t.Fatal(err)
			}
			out = append(out, d.NodeIDs)
		}
	}
	return out
}

// realHits gathers batches through a cache with rows.
func realHits(t *testing.T, store *layout.Store, p rowcache.Policy, bytes int64,
	batches [][]sample.NodeID) rowcache.Stats {
	t.Helper()
	rows, err := rowfile.Open(t.Context(), store, mustDevice(t), store.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	f, err := rowcache.New(t.Context(), rows, p, rowcache.Options{Bytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, b := range batches {
		if err := f.Gather(t.Context(), b, make([]float32, len(b)*simulatedDim)); err != nil {
			t.Fatal(err)
		}
	}
	return f.Stats()
}

// plainBelady keeps what comes next, looking ahead through all batches.
func plainBelady(batches [][]sample.NodeID, rows int) (hits uint64) {
	next := map[sample.NodeID][]int{}
	for b, batch := range batches {
		for _, v := range batch {
			next[v] = append(next[v], b)
		}
	}
	held := map[sample.NodeID]bool{}
	for _, batch := range batches {
		for _, v := range batch {
			if held[v] {
				hits++
			}
			held[v] = true
			next[v] = next[v][1:]
		}
		var all []sample.NodeID
		for v := range held {
			if len(next[v]) > 0 {
				all = append(all, v)
			}
		}
		slices.SortFunc(all, func(a, b sample.NodeID) int {
			return cmp.Or(cmp.Compare(next[a][0], next[b][0]), cmp.Compare(a, b))
		})
		clear(held)
		for _, v := range all[:min(rows, len(all))] {
			held[v] = true
		}
	}
	return hits
}

// TestSimulateIsTheCaches holds that every policy has the hits of the cache with rows on the
// batches that training has, and the bound those of a plain search.
func TestSimulateIsTheCaches(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", simulatedGraph()), mustDevice(t)
	fanout := []int{4, 3}
	batches := sampledBatches(t, store, fanout, 32, 7, 0, 1)
	requests := 0
	for _, b := range batches {
		requests += len(b)
	}
	got := mustCSV(t, mustRun(t, store, dev, "csv",
		"SIMULATE CACHE FANOUT 4,3 BATCH 32 SEED 7 EPOCHS 2 SIZES 2500,4KiB,50%"))
	sizes := []int64{2500, 4096, 900 * simulatedDim * 4 / 2}
	names := cachesim.PolicyNames()
	if len(got) != 1+len(names)*len(sizes) {
		t.Fatalf("%d rows", len(got))
	}
	for i, r := range got[1:] {
		name, bytes := names[i/len(sizes)], sizes[i%len(sizes)]
		hits, read := wantHits(t, store, name, bytes, batches)
		want := []string{name, fmt.Sprint(bytes), r[2], fmt.Sprint(requests), fmt.Sprint(hits)}
		if !slices.Equal(r[:5], want) {
			t.Errorf("got %v, want %v", r, want)
		}
		if name == cachesim.None {
			read = uint64(requests)
		}
		if times, err := strconv.ParseFloat(r[7], 64); err != nil || times < 1 ||
			read > 0 && r[6] != fmt.Sprint(read*4*simulatedDim) {
			t.Errorf("%v: %v reads, %v", r, read, err)
		}
	}
}

// wantHits are the hits of a policy, and the rows that its cache has read; 0 if that is not known.
func wantHits(t *testing.T, store *layout.Store, name string, bytes int64,
	batches [][]sample.NodeID) (hits, read uint64) {
	t.Helper()
	p, err := cachesim.ByName(name, func() ([]sample.NodeID, error) {
		if name == cachesim.StaticDegree {
			return rowcache.FindHot(t.Context(), store, mustDevice(t), 900, nil)
		}
		return rowcache.HotByTrial(t.Context(), func(fn func([]sample.NodeID) error) error {
			for _, b := range sampledBatches(t, store, []int{4, 3}, 32, 7, 2) {
				if err := fn(b); err != nil {
					return err
				}
			}
			return nil
		}, 900, 900, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.New == nil {
		return plainBelady(batches, rowcache.RowsIn(bytes, simulatedDim, 0)), 0
	}
	s := realHits(t, store, p.New(), bytes, batches)
	if name == cachesim.StaticDegree || name == cachesim.StaticSampled {
		return s.Hits, s.Requests - s.Hits + uint64(s.Used)/(4*simulatedDim)
	}
	return s.Hits, s.Requests - s.Hits
}

// sealedRun is a run.json as a training writes it, as far as the shell reads it.
func sealedRun(t *testing.T, store kv.UUID, config map[string]any) string {
	t.Helper()
	b, err := json.MarshalIndent(struct {
		Store  string         `json:"store"`
		Config map[string]any `json:"config"`
		Sum    string         `json:"crc32c"`
	}{store.String(), config, codec.SealZeros}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	codec.SealJSON(b)
	return string(b)
}

// TestSimulateRun holds that RUN takes the settings of a run, which clauses override, and what is
// said of runs that are not there, damaged or of another store.
func TestSimulateRun(t *testing.T) {
	fs := vfs.NewMem()
	store, dev := layouttest.Build(t, fs, "s", simulatedGraph()), mustDevice(t)
	config := map[string]any{"model": "sage", "fanout": []int{4, -1}, "batch": 32, "seed": 7}
	write := func(name, text string) {
		if err := fs.MkdirAll("s/runs/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, fs, "s/runs/"+name+"/run.json", text)
	}
	good := sealedRun(t, store.Meta().UUID, config)
	write("r0001", good)
	write("hurt", strings.Replace(good, "32", "33", 1))
	write("odd", sealedRun(t, store.Meta().UUID, map[string]any{"fanout": []int{4}}))
	write("other", sealedRun(t, kv.UUID{1}, config))
	for run, same := range map[string]string{
		"RUN r0001":                          "FANOUT 4,all BATCH 32 SEED 7",
		"RUN r0001 FANOUT 2 SEED 3 BATCH 40": "FANOUT 2 BATCH 40 SEED 3",
		"RUN r0001 BATCHES 2 SPLIT val":      "FANOUT 4,all BATCH 32 SEED 7 BATCHES 2 SPLIT val",
	} {
		got, want := mustRun(t, store, dev, "csv", "SIMULATE CACHE "+run),
			mustRun(t, store, dev, "csv", "SIMULATE CACHE "+same)
		if got != want {
			t.Errorf("%s:\n%swant:\n%s", run, got, want)
		}
	}
	for stmt, want := range map[string]string{
		"RUN r001": "did you mean r0001?", "RUN hurt": "runs/hurt/run.json: checksum",
		"RUN odd": "batches of 0", "RUN other": "was trained on store 01", "BATCH 0": "BATCH wants",
		"EPOCHS 0": "EPOCHS wants", "BATCHES 0": "BATCHES wants", "SPLIT tain": "mean train?",
		"SIZES 0": "policy none", "SIZES x": "SIZES wants", "SIZES 0%": "percents",
	} {
		err := Run(t.Context(), Options{Store: store, Dev: dev, Out: &bytes.Buffer{},
			Err: &bytes.Buffer{}, Script: "EXPLAIN SIMULATE CACHE " + stmt, Memory: 64 << 20})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", stmt, err, want)
		}
		if damaged(err) != (stmt == "RUN hurt" || stmt == "RUN odd") {
			t.Errorf("%s: %v: damaged is %v", stmt, err, damaged(err))
		}
	}
}

// TestSimulateMemory holds that all is counted, and given back whatever happens.
func TestSimulateMemory(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", simulatedGraph())
	const stmt = "SIMULATE CACHE FANOUT 4,3 BATCH 32"
	refused := 0
	for limit := int64(0); limit < 12<<20; limit += 1 << 20 {
		budget := mem.NewBudget(limit)
		e := query.NewEngine(store, mustDevice(t), budget, 1)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := e.Query(ctx, "SAMPLE RANDOM 1 FANOUT 1", nil); err == nil { // opens the lists
			held := budget.Used()
			_, err := e.Query(ctx, stmt, nil)
			var full *mem.LimitError
			if err != nil && !errors.As(err, &full) {
				t.Errorf("in %d bytes: %v", limit, err)
			}
			if err != nil {
				refused++
			}
			cancel()
			if _, err := e.Query(ctx, stmt, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			if budget.Used() < held || budget.Used() > held+1<<20 { // the block cache fills
				t.Errorf("in %d bytes: %d held before, %d after", limit, held, budget.Used())
			}
		}
		cancel()
		if err := e.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("in %d bytes: %d bytes still counted, %v", limit, budget.Used(), err)
		}
	}
	if refused == 0 {
		t.Error("no bound was too small")
	}
	multi := layouttest.Build(t, vfs.NewMem(), "m", multiGraph())
	err := Run(t.Context(), Options{Store: multi, Dev: mustDevice(t), Out: &bytes.Buffer{},
		Err: &bytes.Buffer{}, Script: "SIMULATE CACHE", Memory: 64 << 20})
	if err == nil || !strings.Contains(err.Error(), "no features to cache") {
		t.Errorf("without features: %v", err)
	}
}

// TestSimulateEnds holds that it ends with its context wherever it is: the batch under way is the
// last.
func TestSimulateEnds(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", simulatedGraph())
	p, err := lang.Parse("SIMULATE CACHE FANOUT 4,3 BATCH 32")
	if err != nil {
		t.Fatal(err)
	}
	places := 0
	for last := int64(1); ; last += 7 {
		budget := mem.NewBudget(64 << 20)
		e := graph.New(store, mustDevice(t), budget)
		ctx, cancel := context.WithCancel(t.Context())
		x, calls := query.New(ctx, e, p, 1, result.Discard{}), int64(0)
		x.Progress = func(done, total int64) {
			if done < 1 || done > total {
				t.Errorf("%d of %d done", done, total)
			}
			if calls++; calls == last {
				cancel()
			}
		}
		err := x.Run(ctx)
		if calls >= last && (!errors.Is(err, context.Canceled) || calls > last+1) {
			t.Errorf("after %d batches: %v, %d were begun", last, err, calls)
		}
		cancel()
		if err := e.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%d bytes still counted, %v", budget.Used(), err)
		}
		if calls < last {
			break
		}
		places++
	}
	if places < 20 {
		t.Errorf("cancelled at %d places", places)
	}
}
