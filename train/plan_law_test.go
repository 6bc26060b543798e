package train

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample/loader"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/setting"
)

func lawConfig() Config {
	c := testConfig()
	c.Fanout, c.Batch, c.Epochs, c.EvalEvery = []int{6, 6, 6}, 60, 2, 2
	return c
}

// leastOf is the least memory that a refusal names, in bytes.
func leastOf(err error) int64 {
	var small *plan.TooSmallError
	if !errors.As(err, &small) {
		return 0
	}
	return (small.Least + 1<<20 - 1) &^ (1<<20 - 1)
}

// TestMemoryIsALaw: from the least memory that is accepted upwards, every plan is kept to: batches
// load, and a run trains and evaluates, without a budget error. What is refused is refused by the
// plan, with a least that is accepted.
func TestMemoryIsALaw(t *testing.T) {
	if testing.Short() {
		t.Skip("loads with twenty bounds")
	}
	s := mustBuild(t, layouttest.Skewed())
	run := 0
	for _, cache := range []string{"auto", "none", "static", "sieve", setting.CacheBelady} {
		for _, load := range []bool{true, false} {
			c := lawConfig()
			c.Cache, c.Memory = cache, 1<<20
			least := leastMemory(t, c, mustPlan(t, s))
			if load {
				c.Memory = 1 << 20
				least = leastMemory(t, c, func(c Config) error { return loadAll(t, s, c) })
			}
			above := []int64{1, 4, 12}[run/2%3] // run grows by two for each
			for _, more := range []int64{0, above} {
				c.Memory = least + more<<20
				run++
				c.Run = fmt.Sprint("run", run)
				var err error
				if load {
					err = loadAll(t, s, c)
				} else {
					_, err = Run(t.Context(), s, mustDevice(t), c, nil)
				}
				if err != nil {
					t.Errorf("cache %s, load only %v, %d MiB: %v", cache, load, c.Memory>>20, err)
				}
			}
		}
	}
}

// planned plans a run on a store.
func mustPlan(t *testing.T, s *layout.Store) func(c Config) error {
	return func(c Config) error {
		_, err := MakePlan(t.Context(), s, mustDevice(t), c)
		return err
	}
}

// leastMemory asks with less and less unreasonable sizes until one is accepted.
func leastMemory(t *testing.T, c Config, ask func(c Config) error) int64 {
	t.Helper()
	var err error
	for range 5 {
		if err = ask(c); err == nil {
			return c.Memory
		}
		n := leastOf(err)
		if n <= c.Memory {
			break
		}
		c.Memory = n
	}
	t.Fatalf("cache %s, %d MiB: %v", c.Cache, c.Memory>>20, err)
	return 0
}

// loadAll loads all batches, without a model.
func loadAll(t *testing.T, s *layout.Store, c Config) (err error) {
	t.Helper()
	src := loader.NewSource(s, mustDevice(t), mem.NewProcessBudget(c.Memory))
	defer func() { err = errors.Join(err, src.Close()) }()
	p := probe.Config{Facts: plan.Facts{Memory: c.Memory, Settings: plan.SettingsOf(&c)},
		Fanout: c.Fanout,
		Seed:   c.Seed, StepName: "none"}
	l, made, err := probe.Open(t.Context(), src, c.Split, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for epoch := range uint64(c.Epochs) {
		if err := loadEpoch(t, l, epoch); err != nil {
			return fmt.Errorf("%w: %s", err, made)
		}
	}
	return nil
}

func loadEpoch(t *testing.T, l *loader.Loader, epoch uint64) (err error) {
	e, err := l.Epoch(t.Context(), epoch, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for {
		b, err := e.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b.Release()
	}
}
