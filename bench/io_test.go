package bench

import (
	"errors"
	"math"
	"os/exec"
	"strings"
	"testing"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestIO(t *testing.T) {
	opt := IOOptions{Dir: t.TempDir(), Size: 8 << 20, Blocks: []int{4096, 65536}, Depth: 8,
		Seconds: 0.01, Backends: []blockdev.Backend{blockdev.Pread, blockdev.Buffered,
			blockdev.MMap, blockdev.Auto}}
	r, err := IO(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 8 {
		t.Fatalf("%d rows, want 8", len(r.Rows))
	}
	for _, row := range r.Rows {
		for _, field := range []string{"reads_per_s", "bytes_per_s", "cpu_us_per_read"} {
			if v, ok := row[field].(float64); !ok || v < 0 || field != "cpu_us_per_read" && v == 0 {
				t.Errorf("%s: %s is %v", row["backend"], field, row[field])
			}
		}
		if why, _ := row["why"].(string); row["fio_ratio"] != nil || !strings.Contains(why, "fio") {
			t.Errorf("%s: fio_ratio %v, why %q", row["backend"], row["fio_ratio"], why)
		}
	}
	left, err := vfs.Default.List(opt.Dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestIOBesideFio(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil || testing.Short() {
		t.Skip("needs fio, and some seconds")
	}
	r, err := IO(t.Context(), IOOptions{Dir: t.TempDir(), Size: 8 << 20, Blocks: []int{4096},
		Seconds: 0.05, Backends: []blockdev.Backend{blockdev.Pread}, Fio: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Rows[1]["backend"] != "fio beside pread" {
		t.Fatalf("rows: %v", r.Rows)
	}
	// How fast either reads is the machine's matter, in so short a time above all.
	for _, row := range r.Rows {
		for _, field := range []string{"reads_per_s", "fio_ratio"} {
			if v, ok := row[field].(float64); !ok || !(v > 0) || math.IsInf(v, 0) {
				t.Errorf("%s: %s is %v", row["backend"], field, row[field])
			}
		}
	}
}

// TestRatioToFio: the ratio is the median of the rounds' ratios, each of one round beside its fio.
func TestRatioToFio(t *testing.T) {
	c := ioCell{backend: blockdev.Pread, block: 4096,
		ours: []ioResult{{reads: 100, cpuMicros: 7}, {reads: 300, cpuMicros: 9},
			{reads: 200, cpuMicros: 8}},
		fio: []fioResult{{Reads: 200, CPUMicros: 4}, {Reads: 100, CPUMicros: 6},
			{Reads: 250, CPUMicros: 5}}}
	rows := c.rows(&IOOptions{Depth: 8})
	if len(rows) != 2 {
		t.Fatalf("rows: %v", rows)
	}
	for i, want := range []Row{
		{"reads_per_s": 200.0, "bytes_per_s": 819200.0, "cpu_us_per_read": 8.0, "fio_ratio": 0.8},
		{"reads_per_s": 200.0, "bytes_per_s": 819200.0, "cpu_us_per_read": 5.0, "fio_ratio": 1.0},
	} {
		for field, v := range want {
			if rows[i][field] != v {
				t.Errorf("%s: %s is %v, want %v", rows[i]["backend"], field, rows[i][field], v)
			}
		}
	}
	c.fio = c.fio[:2] // of the last round there is none
	if rows := c.rows(&IOOptions{Depth: 8}); len(rows) != 1 || rows[0]["fio_ratio"] != nil {
		t.Errorf("rows without a ratio: %v", rows)
	}
}

func TestIORefuses(t *testing.T) {
	for name, opt := range map[string]IOOptions{
		"block":   {Blocks: []int{1000}},
		"size":    {Size: 4096, Blocks: []int{65536}},
		"backend": {Backends: []blockdev.Backend{"tape"}},
		"seconds": {Seconds: math.NaN()},
		"depth":   {Depth: -1},
	} {
		opt.Dir = t.TempDir()
		_, err := IO(t.Context(), opt)
		var wrong *OptionError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// BenchmarkIO prints what "gdb bench io --fio" does, for a 1 GiB file in the temporary directory.
func BenchmarkIO(b *testing.B) {
	blockdev.RaiseGOMAXPROCS()
	for b.Loop() {
		r, err := IO(b.Context(), IOOptions{Dir: b.TempDir(), Size: 1 << 30, Fio: true, Seconds: 1})
		if err != nil {
			b.Fatal(err)
		}
		for _, row := range r.Rows {
			b.Logf("%-18v %6v %8.0f/s %5.2f us %v %v", row["backend"], row["block_bytes"],
				row["reads_per_s"], row["cpu_us_per_read"], row["fio_ratio"], row["why"])
		}
	}
}
