package train

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/runs"
	"gdb/train/setting"
)

// trialsEnv sets how many trials each test of this package makes that draws them by a seed.
const trialsEnv = "GDB_TEST_TRIALS"

// newTrials returns the number of trials, which is usual if the environment does not say another,
// and what draws them.
func newTrials(t *testing.T, usual int) (int, *rand.Rand) {
	t.Helper()
	n, seed := usual, rand.Uint64()
	if s := os.Getenv(trialsEnv); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 {
			t.Fatalf("%s=%s: want a positive number", trialsEnv, s)
		}
	}
	t.Logf("seed %d, %d trials", seed, n)
	return n, rand.New(rand.NewPCG(seed, 0))
}

// way is one way to hold and read the data of a training.
type way struct {
	io    blockdev.Backend
	nbrs  int64 // size of the neighbor cache
	plain bool  // without dropout: then the first layer may average features in place
	cfg   Config
}

func (w way) String() string {
	c := &w.cfg
	return fmt.Sprintf("io=%s/topology=%s/nbrs=%d/cache=%s/bytes=%d/superbatch=%d/plain=%v", w.io,
		c.Topology, w.nbrs, c.Cache, c.FeatureCache, c.Superbatch, w.plain)
}

// backends read stores.
var backends = []blockdev.Backend{blockdev.URing, blockdev.Pread, blockdev.Buffered, blockdev.MMap,
	blockdev.Memory}

// ways lists, for each backend and policy, all ways: of them one is drawn for each trial.
func ways() (all [][]way) {
	for _, io := range backends {
		for _, cache := range setting.Choices("cache") {
			var some []way
			for _, c := range cacheWays(cache) {
				for _, nbrs := range []int64{-2, setting.NeighborAuto, 0,
					64 << 10} { // -2: resident
					for _, plain := range []bool{false, true} {
						w := way{io: io, nbrs: max(setting.NeighborAuto, nbrs), plain: plain,
							cfg: c}
						w.cfg.Topology, w.cfg.NeighborCache = "paged", w.nbrs
						w.cfg.NeighborsAhead = true
						if nbrs < setting.NeighborAuto {
							w.cfg.Topology = "resident"
						}
						if plain {
							w.cfg.Dropout = 0
						}
						some = append(some, w)
					}
				}
			}
			all = append(all, some)
		}
	}
	return all
}

// cacheWays are the sizes of a cache.
func cacheWays(cache string) (all []Config) {
	c := testConfig()
	c.Epochs, c.Cache = 2, cache
	sizes, batches := []int64{0, 300, 8 << 10, 20 << 10}, []int{0}
	switch cache {
	case "none":
		sizes = sizes[:1]
	case setting.CacheBelady:
		sizes, batches = sizes[1:], []int{1, 3, 0}
	}
	for _, c.FeatureCache = range sizes {
		for _, c.Superbatch = range batches {
			all = append(all, c)
		}
	}
	return all
}

// TestWeightsAreTheSame trains with all ways to hold and read the data: policies, sizes of caches,
// superbatches, neighbor caches and backends. The weights are the same bit for bit, and so is what
// the validation saw. A trial takes one way of each backend and policy; GDB_TEST_TRIALS=100 comes
// to all of them.
func TestWeightsAreTheSame(t *testing.T) {
	notShort(t)
	trials, draw := newTrials(t, 1)
	onDisk := mustBuildOnDisk(t, t.TempDir())
	inMemory := mustBuild(t, planted(false))
	want, ran := map[bool]string{}, 0
	for range trials {
		for _, some := range ways() {
			w := some[draw.IntN(len(some))]
			dev, err := blockdev.Open(blockdev.Options{Backend: w.io})
			if err != nil {
				t.Logf("without %s: %v", w.io, err)
				continue
			}
			s := onDisk
			if w.io == blockdev.Memory {
				s = inMemory
			}
			ran++
			w.cfg.Run = "t" + strconv.Itoa(ran)
			got := wayOutcome(t, s, dev, w)
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
			if want[w.plain] == "" {
				want[w.plain] = got
			}
			if got != want[w.plain] {
				t.Errorf("%s: other weights", w)
			}
		}
	}
	if ran < trials*len(setting.Choices("cache")) || want[false] == want[true] {
		t.Errorf("%d runs; dropout changes nothing: %v", ran, want[false] == want[true])
	}
}

// wayOutcome trains and returns the last checkpoint's arrays and position.
func wayOutcome(t *testing.T, s *layout.Store, dev blockdev.Device, w way) string {
	t.Helper()
	if _, err := Run(context.Background(), s, dev, w.cfg, nil); err != nil {
		t.Fatalf("%s: %v", w, err)
	}
	checkPrep(t, s)
	p, arrays := finalState(t, s, w.cfg.Run)
	if err := s.FS().RemoveAll(runs.Open(s, w.cfg.Run).Path()); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x best %v in epoch %d, test %v", arrays, p.Best, p.BestEpoch, *p.Test)
}

// TestOtherWeights: seed and dropout do decide the weights.
func TestOtherWeights(t *testing.T) {
	var seen [][]byte
	for _, change := range []func(c *Config){func(*Config) {}, func(c *Config) { c.Seed = 2 },
		func(c *Config) { c.Dropout = 0 }, func(c *Config) { c.Fanout = []int{sample.All, 3} }} {
		s, c := mustBuild(t, planted(false)), testConfig()
		c.Epochs = 2
		change(&c)
		mustRun(t, s, c)
		_, got := finalState(t, s, c.Run)
		for i, old := range seen {
			if bytes.Equal(got, old) {
				t.Errorf("settings %d and %d give the same weights", i, len(seen))
			}
		}
		seen = append(seen, got)
	}
}
