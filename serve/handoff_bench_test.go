package serve

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

var (
	handOffStore  = flag.String("store", "", "store of BenchmarkHandOff")
	handOffPython = flag.String("python", "", "python that has numpy, or more: it receives too")
	handOffOutput = flag.String("output", "numpy", "what Python makes of a batch")
	handOffMemory = flag.Int64("memory", 4<<30, "bytes of memory of BenchmarkHandOff")
)

// BenchmarkHandOff measures what batches cost inside gdb, through the pipeline of a training that
// has no model, and what the same ones cost when a client receives them and does nothing else:
//
//	go test ./serve -run '^$' -bench HandOff -benchtime 5x -store STORE -python python3
//
// All come from one source: the same lists, the same rows in memory, as many threads. They take
// turns, an epoch each; b.N is how many turns. "bare" gathers as the server does, without lists,
// shared memory and a client. Metrics are of a batch, the median turn, with the cores that all
// processes used; "over" is what one takes above another, in percent, the median of the turns.
func BenchmarkHandOff(b *testing.B) {
	if *handOffStore == "" {
		b.Skip("no -store")
	}
	st, err := layout.Open(b.Context(), vfs.Default, *handOffStore)
	if err != nil {
		b.Fatal(err)
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Auto})
	if err != nil {
		b.Fatal(err)
	}
	r := start(b, st, Options{Memory: *handOffMemory, Threads: runtime.NumCPU(), Device: dev})
	ask := protocol.Open{Split: "train", Fanout: []int{10, 10, 10}, Batch: 1000, Seed: 1, World: 1}
	k := r.connect(b)
	k.open(ask)
	systems := []handOff{{"inside", insideEpochs(b, r, &ask, false)},
		{"bare", insideEpochs(b, r, &ask, true)}, {"client", k.epochs()}}
	if *handOffPython != "" {
		systems = append(systems, handOff{"python", pythonEpochs(b, r.path)})
	}
	took, used := make([][]float64, len(systems)), make([][]float64, len(systems))
	for turn := range uint64(b.N) + 1 { // the first fills caches
		for i, s := range systems {
			begun, before := time.Now(), cpuTime(b)
			batches, more := s.epoch(turn)
			if turn > 0 {
				each := float64(time.Millisecond) * float64(batches)
				took[i] = append(took[i], float64(time.Since(begun))/each)
				used[i] = append(used[i], float64(cpuTime(b)-before+more)/each)
			}
		}
	}
	for i, s := range systems {
		b.ReportMetric(median(took[i]), s.name+"-ms")
		b.ReportMetric(median(used[i]), s.name+"-cpu-ms")
		for k, other := range systems[:min(i, 2)] {
			name := s.name + "-over-" + other.name + "-%"
			b.ReportMetric(median(over(took[i], took[k])), name)
			b.ReportMetric(median(over(used[i], used[k])), "cpu-"+name)
		}
	}
}

// handOff is a way to get batches. epoch takes all of an epoch, and returns how many there were and
// what other processes used of the cores.
type handOff struct {
	name  string
	epoch func(n uint64) (batches int, used time.Duration)
}

// insideEpochs makes batches as a training does, with their rows in memory of the pipeline; bare
// gathers them here as the server does, to memory that stays from epoch to epoch.
func insideEpochs(b *testing.B, r *running, ask *protocol.Open,
	bare bool) func(uint64) (int, time.Duration) {
	seeds, _, err := r.seeds(b.Context(), r.mu.src, ask, &protocol.Frame{})
	if err != nil {
		b.Fatal(err)
	}
	c := r.mu.shape
	c.Seeds, c.Batch, c.Fanout, c.Seed, c.Later = seeds, ask.Batch, ask.Fanout, ask.Seed, bare
	l := loader.New(r.mu.src, c)
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	})
	gather := func(*sample.Dense) {}
	if bare {
		gather = ownRows(b, r.mu.src.Features, 2+c.Ready) // one with a client, one that is filled
	}
	return func(n uint64) (batches int, _ time.Duration) {
		e, err := l.Epoch(b.Context(), n, 0)
		if err != nil {
			b.Fatal(err)
		}
		for {
			batch, err := e.Next(b.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			gather(&batch.Dense)
			batch.Release()
			batches++
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		return batches, 0
	}
}

// ownRows returns a function that gathers the rows of batches to pieces pieces of memory in turn.
func ownRows(b *testing.B, from rowcache.Features, pieces int) func(d *sample.Dense) {
	rows := make([]*mem.Arena, pieces)
	b.Cleanup(func() {
		for _, a := range rows {
			if a != nil {
				_ = a.Free() // unmapping what was mapped cannot fail
			}
		}
	})
	return func(d *sample.Dense) {
		n := len(d.NodeIDs) * from.Dim() * 4
		if rows[0] == nil || len(rows[0].Bytes()) < n {
			if rows[0] != nil {
				_ = rows[0].Free()
			}
			var err error
			if rows[0], err = mem.NewArena(nil, "rows", int64(n+n/16)); err != nil {
				b.Fatal(err)
			}
		}
		if err := from.Gather(b.Context(), d.NodeIDs,
			mem.View[float32](rows[0].Bytes()[:n])); err != nil {
			b.Fatal(err)
		}
		rows = append(rows[1:], rows[0])
	}
}

// epochs receives batches, and gives each back with the next request.
func (k *client) epochs() func(uint64) (int, time.Duration) {
	return func(n uint64) (batches int, _ time.Duration) {
		k.start(n, 0)
		for {
			got, err := k.next()
			if err != nil {
				k.t.Fatal(err)
			}
			if got == nil {
				return batches, 0
			}
			k.give(got)
			batches++
		}
	}
}

// receiver receives an epoch for each number that it reads, and prints how many batches there were
// and what it took of the cores.
const receiver = `
import sys, time, gdbgraph
_, store, socket, output = sys.argv
loader = gdbgraph.open(store, socket=socket).loader([10, 10, 10], 1000, seed=1, output=output)
for line in sys.stdin:
    used, count = time.process_time_ns(), 0
    loader.set_epoch(int(line))
    for batch in loader:
        count += 1
    print(count, time.process_time_ns() - used, flush=True)
`

// pythonEpochs has Python receive batches.
func pythonEpochs(b *testing.B, socket string) func(uint64) (int, time.Duration) {
	cmd := exec.Command(*handOffPython, "-c", receiver, *handOffStore, socket, *handOffOutput)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../python")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			b.Error(err)
		}
	})
	return func(n uint64) (batches int, used time.Duration) {
		if _, err := fmt.Fprintln(in, n); err != nil {
			b.Fatal(err)
		}
		if _, err := fmt.Fscan(out, &batches, &used); err != nil {
			b.Fatal(err)
		}
		return batches, used
	}
}

// over is by how many percent each is above the other.
func over(of, other []float64) (all []float64) {
	for i := range of {
		all = append(all, 100*(of[i]/other[i]-1))
	}
	return all
}

// median returns the median of numbers.
func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// cpuTime is what the process has used of its cores.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
