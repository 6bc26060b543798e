package probe

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/train/plan"

	"golang.org/x/sys/unix"
)

// Clocked runs do a number of times and returns the round of median duration.
func Clocked(rounds int, do func() error) (plan.Work, error) {
	var all []plan.Work
	for range rounds {
		cpu, begun := cpuTime(), time.Now()
		if err := do(); err != nil {
			return plan.Work{}, err
		}
		all = append(all, plan.Work{Seconds: time.Since(begun).Seconds(),
			CPU: (cpuTime() - cpu).Seconds()})
	}
	return Middle(all), nil
}

// Middle returns the work of median duration. It sorts all.
func Middle(all []plan.Work) plan.Work {
	slices.SortFunc(all, func(a, b plan.Work) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return all[len(all)/2]
}

// coresHad returns how many cores the process gets while other processes use some: from 0.01 to the
// number there are.
func coresHad() float64 {
	const spin = 30 * time.Millisecond
	w, _ := Clocked(1, func() error { // cannot fail
		var all sync.WaitGroup
		for range runtime.NumCPU() {
			all.Go(func() {
				defer bug.Catch()
				for begun := time.Now(); time.Since(begun) < spin; {
				}
			})
		}
		all.Wait()
		return nil
	})
	return min(max(w.Demand(), 1e-2), float64(runtime.NumCPU()))
}

// cpuTime returns the core time that the process has used; 0 if the system does not tell.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// beside does work on a number of goroutines. What failed for lack of memory is done again alone
// when all else is done, so that the result does not depend on what held memory at the time.
func beside(goroutines int, work []func() error) error {
	var wg sync.WaitGroup
	errs, turns := make([]error, len(work)), make(chan struct{}, max(1, goroutines))
	for i, do := range work {
		turns <- struct{}{}
		wg.Go(func() {
			defer bug.Catch()
			errs[i] = do()
			<-turns
		})
	}
	wg.Wait()
	for i, do := range work {
		var full *mem.LimitError
		if errors.As(errs[i], &full) {
			errs[i] = do()
		}
	}
	return errors.Join(errs...)
}
