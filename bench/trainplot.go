package bench

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gdb/internal/chart"
	"gdb/internal/files"
	"gdb/internal/mem"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// PlotTrain draws a report of Train as SVG files in dir, and returns their paths: without a sweep
// what the time of an epoch went by, and how busy its stages were, by system; with one, that time,
// how many times faster than mmap it is, and the hit ratio over what was swept.
func PlotTrain(fs vfs.FS, dir string, r *Report) ([]string, error) {
	p, err := newPlots(fs, dir)
	if err != nil {
		return nil, err
	}
	sweep := ""
	if len(r.Rows) > 0 {
		sweep, _ = r.Rows[0]["sweep"].(string)
	}
	if sweep == "" {
		p.draw("train-epoch.svg", epochBars(r).SVG())
		p.draw("train-stages.svg", stageBars(r).SVG())
		return p.paths, p.err
	}
	for _, c := range []struct {
		file, title, label string
		most               float64
		value              func(row Row) float64
	}{
		{"epoch", "Time of an epoch", "seconds an epoch, less is better", 0,
			func(row Row) float64 { return number(row["epoch_s"]) }},
		{"speedup", "Speedup over mmap", "times as fast as mmap", 0, overMapped(r)},
		{"hits", "Feature rows found in the cache", "% of the rows asked for", 100,
			func(row Row) float64 { return 100 * number(row["hit_ratio"]) }},
	} {
		lines := sweepLines(r, sweep, c.value)
		if lines.Known() {
			lines.Title, lines.YLabel, lines.Most = c.title, c.label, c.most
			p.draw("train-"+sweep+"-"+c.file+".svg", lines.SVG())
		}
	}
	return p.paths, p.err
}

// PlotCache draws a report of Cache: the hit ratio of each policy by size, and what it reads.
func PlotCache(fs vfs.FS, dir string, r *Report) ([]string, error) {
	p, err := newPlots(fs, dir)
	if err != nil {
		return nil, err
	}
	hits := &chart.Lines{Title: "Feature rows found in the cache",
		YLabel: "% of the rows asked for",
		Note:   "static caches begin full, the others empty: belady is the bound of those",
		Most:   100}
	read := &chart.Lines{Title: "Bytes of feature rows read, less is better", YLabel: "MiB",
		Note: "with what static caches read before the first batch"}
	for _, row := range r.Rows {
		policy, place := fmt.Sprint(row["policy"]), mem.FormatSize(row["capacity_bytes"].(int64))
		hits.Add(policy, place, 100*number(row["hit_ratio"]))
		read.Add(policy, place, float64(row["bytes_read"].(uint64))/(1<<20))
	}
	hits.XLabel, read.XLabel = "memory of the cache", "memory of the cache"
	p.draw("cache-hits.svg", hits.SVG())
	p.draw("cache-read.svg", read.SVG())
	return p.paths, p.err
}

// plots writes pictures into a directory, up to the first error.
type plots struct {
	fs    vfs.FS
	dir   string
	paths []string
	err   error
}

func newPlots(fs vfs.FS, dir string) (*plots, error) {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("bench: plot: %w", err)
	}
	return &plots{fs: fs, dir: dir}, nil
}

func (p *plots) draw(name string, svg []byte) {
	if p.err == nil {
		p.paths = append(p.paths, p.fs.PathJoin(p.dir, name))
		p.err = files.WriteAtomic(p.fs, p.paths[len(p.paths)-1], svg)
	}
}

// epochBars divide the time of an epoch by what its consumer did: the parts add up to it.
func epochBars(r *Report) *chart.Bars {
	c := &chart.Bars{Title: "Time of an epoch, by system",
		YLabel: "seconds an epoch, less is better",
		Note:   common(r, ""),
		Parts:  []string{"computing", "waiting for reads", "waiting otherwise"},
		Foot:   "waiting otherwise: for sampling, planning and gathering; page faults of mmap too"}
	for _, row := range r.Rows {
		epoch := number(row["epoch_s"])
		compute, reads := orZero(row["compute_s"]), orZero(row["io_wait_s"])
		addBar(c, row, epoch, compute, reads, epoch-compute-reads)
	}
	return c
}

// stageBars returns how long the stages of each system were busy.
func stageBars(r *Report) *chart.Bars {
	c := &chart.Bars{Title: "How long stages were busy in an epoch, by system",
		YLabel: "seconds, of all threads", Note: common(r, ""),
		Parts: []string{"sample", "gather", "compute"},
		Foot:  "stages overlap, and reads are waited for in them: the sum is not the epoch"}
	for _, row := range r.Rows {
		sample, gather := orZero(row["sample_s"]), orZero(row["gather_s"])
		compute := orZero(row["compute_s"])
		addBar(c, row, sample+gather+compute, sample, gather, compute)
	}
	return c
}

// addBar adds the bar of a system, as high as the sum of its parts.
func addBar(c *chart.Bars, row Row, sum float64, parts ...float64) {
	if row["epoch_s"] == nil {
		sum, parts = math.NaN(), make([]float64, len(parts))
	}
	for k := range parts {
		parts[k] = max(0, parts[k]) // rounding
	}
	c.Groups = append(c.Groups, fmt.Sprint(row["system"]))
	c.Values, c.Sums = append(c.Values, parts), append(c.Sums, sum)
}

// common says what all systems had in common, but for what is swept.
func common(r *Report, sweep string) string {
	var parts []string
	bound, unbounded := "", false
	for _, row := range r.Rows {
		if n := number(row["memory_bytes"]); !math.IsNaN(n) {
			bound = mem.FormatSize(int64(n))
		} else {
			unbounded = true
		}
	}
	if bound != "" && sweep != "memory" {
		if unbounded {
			bound += " (memory: no bound)"
		}
		parts = append(parts, bound)
	}
	if sweep != "batch" && len(r.Rows) > 0 {
		parts = append(parts, fmt.Sprintf("batches of %v", r.Rows[0]["batch"]))
	}
	if sweep != "store" && len(r.Rows) > 0 {
		parts = append(parts, fmt.Sprintf("%v feature values a node", r.Rows[0]["dim"]))
	}
	return strings.Join(append(parts, "mean of all epochs"), ", ")
}

// overMapped is how many times as fast as mmap at the same place a row is; NaN if it was not
// measured there.
func overMapped(r *Report) func(row Row) float64 {
	mapped := map[string]float64{}
	for _, row := range r.Rows {
		if row["system"] == "mmap" {
			mapped[fmt.Sprint(row["value"])] = number(row["epoch_s"])
		}
	}
	return func(row Row) float64 {
		base, ok := mapped[fmt.Sprint(row["value"])]
		if !ok {
			return math.NaN()
		}
		return base / number(row["epoch_s"])
	}
}

// sweepLabels say what a flag counts.
var sweepLabels = map[string]string{"memory": "memory of each system", "batch": "seeds in a batch",
	"superbatch": "batches in a superbatch", "feature-cache": "memory of the feature cache",
	"neighbor-cache": "memory of the neighbor cache", "hidden": "width of the hidden layers",
	"fanout": "neighbors per hop", "threads": "threads", "store": "store"}

// sweepLines has a line for each system that has the value at all.
func sweepLines(r *Report, sweep string, value func(row Row) float64) *chart.Lines {
	c := &chart.Lines{XLabel: sweepLabels[sweep], Note: common(r, sweep)}
	c.XLabel = cmp.Or(c.XLabel, "--"+sweep)
	byDim := sweep == "store" && eachItsDim(r)
	if byDim {
		c.XLabel = "feature values a node"
	}
	for _, row := range r.Rows {
		place := fmt.Sprint(row["value"])
		if byDim {
			place = fmt.Sprint(row["dim"])
		}
		c.Add(fmt.Sprint(row["system"]), place, value(row))
	}
	return c
}

// eachItsDim is whether every store has features of a width of its own.
func eachItsDim(r *Report) bool {
	dimOf, of := map[string]string{}, map[string]bool{}
	for _, row := range r.Rows {
		dimOf[fmt.Sprint(row["value"])] = fmt.Sprint(row["dim"])
	}
	for _, dim := range dimOf {
		of[dim] = true
	}
	return len(of) == len(dimOf)
}

// number returns a row's field, NaN where it was not measured.
func number(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	}
	return math.NaN()
}

func orZero(v any) float64 {
	if n := number(v); !math.IsNaN(n) {
		return n
	}
	return 0
}
