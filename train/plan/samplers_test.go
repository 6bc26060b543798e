package plan

import (
	"testing"

	topo "gdb/layout/topology"
)

// TestSamplers: samplers keep up with the slowest other stage, with a quarter to spare, or use the
// share of the cores that their work has of all.
func TestSamplers(t *testing.T) {
	for _, c := range []struct {
		what      string
		own, wait float64
		step      Work
		cores     float64
		threads   int
		inTurn    bool
		want      int
	}{
		{what: "a step that takes all cores", own: 1e-3, step: Work{1e-2, 16e-2}, cores: 16,
			threads: 16, want: 1},
		// Copies and the device take 1 ms each, beside each other, and a sampler 10.
		{what: "a device", own: 1e-2, step: Work{1e-3, 1e-3}, cores: 16, threads: 16, want: 13},
		{what: "a device, few cores", own: 1e-2, step: Work{1e-3, 1e-3}, cores: 4, threads: 4,
			want: 4},
		// 12 ms of four cores are 3 ms: 10 ms of sampling take 3.4 of these.
		{what: "cores are short", own: 1e-2, step: Work{1e-4, 1e-4}, cores: 4, threads: 64,
			want: 5},
		{what: "lists are waited for", own: 1e-3, wait: 9e-3, step: Work{4e-3, 4e-3}, cores: 8,
			threads: 8, want: 4},
		{what: "in turn", own: 1e-2, step: Work{4e-3, 4e-3}, cores: 8, threads: 8, inTurn: true,
			want: 3},
		{what: "half a thread", own: 1e-4, step: Work{1e-2, 1e-2}, cores: 1, threads: 1, want: 1},
	} {
		s := fixedCosts(RowsCost{Hit: 1})
		s.Resident, s.Step, s.Device.Cores = Price{Own: c.own, Wait: c.wait}, c.step, c.cores
		p := fixedSplit("all", c.inTurn)
		if p.facts.Threads = c.threads; s.Samplers(p) != c.want {
			t.Errorf("%s: %d samplers, want %d", c.what, s.Samplers(p), c.want)
		}
	}
}

// TestWithSamplers: a plan whose samplers are too slow gets more where they are forecast to help
// and memory has room, and stays as it is otherwise.
func TestWithSamplers(t *testing.T) {
	for _, c := range []struct {
		what   string
		memory int64
		own    float64
		want   int
	}{
		{"room", 1 << 30, 4e-3, 4},
		{"sampling is fast", 1 << 30, 1e-5, 1},
		{"the room of batches that wait", 0, 4e-3, 4},
	} {
		f := smallFacts(1 << 30)
		f.Threads, f.Evaluates = 4, true
		f.Forms = []topo.FormBytes{{Form: topo.Plain, Bytes: 1 << 20}}
		all, err := Plans(f)
		if err != nil {
			t.Fatal(err)
		}
		s := fixedCosts(RowsCost{Hit: 1})
		s.Device.Cores, s.Step, s.Resident.Own = 4, Work{1e-3, 1e-3}, c.own
		best := s.Choose(all)
		if c.memory == 0 {
			f.Memory -= best.Left()
		}
		got := s.WithSamplers(best)
		if got.Samplers != c.want {
			t.Errorf("%s: %d samplers, want %d", c.what, got.Samplers, c.want)
		}
		if got.Left() < 0 || c.memory == 0 && got.Ready >= best.Ready {
			t.Errorf("%s: %s, before %s", c.what, got, best)
		}
	}
}
