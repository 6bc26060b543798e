package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train"
	"gdb/train/setting"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// trainSystem is one way to feed a training: what the comparison has for a row.
type trainSystem struct {
	name string
	// set changes the settings that all systems share.
	set func(c *train.Config)
	// mapped reads topology and features through memory maps instead of gdb's readers.
	mapped bool
	// unbounded systems run without a cgroup.
	unbounded bool
	// approximate systems are given other batches, and only with a model.
	approximate bool
}

// trainSystems are all systems; those of the name of a cache are gdb with it.
var trainSystems = []trainSystem{
	{name: "mmap", mapped: true},
	cacheSystem("none"), cacheSystem("static"), cacheSystem("sieve"), cacheSystem("belady"),
	cacheSystem("auto"),
	{name: setting.StrategyMacro, approximate: true, set: func(c *train.Config) {
		c.Strategy, c.Cache = setting.StrategyMacro, "auto"
	}},
	{name: "memory", unbounded: true, set: func(c *train.Config) {
		c.Cache, c.Topology, c.FeatureCache = "auto", "resident", 0
	}},
}

func cacheSystem(name string) trainSystem {
	return trainSystem{name: name, set: func(c *train.Config) { c.Cache = name }}
}

// Systems returns the names of all systems that Train compares.
func Systems() (names []string) {
	for _, s := range trainSystems {
		names = append(names, s.name)
	}
	return names
}

func findSystem(name string) (*trainSystem, error) {
	i := slices.IndexFunc(trainSystems, func(s trainSystem) bool { return s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("bench: train: unknown system %q: known are %s%s", name,
			strings.Join(Systems(), ", "), simulatedHint(name))
	}
	return &trainSystems[i], nil
}

// TrainPoint is one setting at which all systems are measured.
type TrainPoint struct {
	// Sweep and Value tell what is varied and where this point stands; empty without a sweep.
	Sweep, Value string
	// Store is the directory of a store with features, labels and a train split.
	Store string
	// Config has what all systems share: Memory, Epochs, Fanout, Batch, Threads and so on. The
	// mean of all epochs is reported, and the last one.
	Config train.Config
}

// TrainOptions configure the comparison of whole epochs.
type TrainOptions struct {
	// Points are measured in this order.
	Points []TrainPoint
	// Systems are measured in this order.
	Systems []string
	// Model is none, to load batches and drop them, or a model that trains on them.
	Model string
	// Pace slows reads down for all systems; zero does not.
	Pace blockdev.Pace
	// Program is the gdb that runs each system, as "bench train-system".
	Program string
	// Progress gets systems done and in all; nil for none.
	Progress func(phase string, done, total int64, unit string)
}

// Validate reports the first setting that makes no sense.
func (o *TrainOptions) Validate() error {
	if len(o.Systems) == 0 {
		return errors.New("bench: train: no --systems")
	}
	for _, p := range o.Points {
		if o.Model != "none" && o.Model != p.Config.Model {
			return fmt.Errorf("bench: train: model %q: want none or %s", o.Model, p.Config.Model)
		}
		for _, name := range o.Systems {
			c, err := p.config(name)
			if err != nil {
				return err
			}
			if err := o.goesWith(name); err != nil {
				return err
			}
			if err := c.Validate(); err != nil {
				return fmt.Errorf("bench: system %s: %w", name, err)
			}
			if name == "mmap" && c.PacksFeatures() {
				return errors.New("bench: system mmap reads float32: leave it out, or " +
					"--precision bf16")
			}
		}
	}
	return nil
}

// goesWith returns an error if a system cannot be measured with the options.
func (o *TrainOptions) goesWith(name string) error {
	s, err := findSystem(name)
	switch {
	case err != nil:
		return err
	case s.approximate && o.Model == "none":
		return fmt.Errorf("bench: system %s has batches of its own, which loading alone says "+
			"nothing about: give --model", name)
	case s.mapped && o.Pace != blockdev.Pace{}:
		return fmt.Errorf("bench: system %s reads by page faults, which --device-iops and "+
			"--device-bandwidth do not slow down: leave it out", name)
	}
	return nil
}

// config returns the settings of one system.
func (p *TrainPoint) config(system string) (train.Config, error) {
	s, err := findSystem(system)
	if err != nil {
		return p.Config, err
	}
	c := p.Config
	if s.set != nil {
		s.set(&c)
	}
	if s.unbounded {
		c.Memory = mem.Available() / 10 * 9
	}
	return c, nil
}

// trainColumns are the fields of a row, in the order of the table.
var trainColumns = []string{"system", "memory_bytes", "epoch_s", "last_epoch_s", "batch_s",
	"batches", "open_s", "total_s", "sample_s", "gather_s", "compute_s", "io_wait_s", "bytes_read",
	"hit_ratio", "peak_rss_bytes", "cgroup_peak_bytes"}

// Train measures epochs of training, or of loading alone, by several systems: each in a process of
// its own, in a fresh memory cgroup, beginning with a cold page cache. A system that fails or is
// killed has a row that says why. The report has all rows that were measured also with an error:
// after a Ctrl-C, or if systems were not given the same batches.
func Train(ctx context.Context, opt TrainOptions) (*Report, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	r := newReport("train", trainColumns...)
	if len(opt.Points) > 1 {
		r.Columns = slices.Insert(slices.Clone(trainColumns), 1, "value")
	}
	stores := make([]*layout.Store, len(opt.Points)) // all, before hours of measuring
	for i, p := range opt.Points {
		var err error
		if stores[i], err = openFeatures(ctx, p.Store); err != nil {
			return r, err
		}
	}
	for i, p := range opt.Points {
		if err := trainPoint(ctx, &opt, &p, stores[i], r); err != nil {
			return r, err
		}
	}
	failed := 0
	for _, row := range r.Rows {
		if row["epoch_s"] == nil {
			failed++
		}
	}
	if failed == len(r.Rows) {
		return r, fmt.Errorf("bench: train: no system could be measured: %v",
			r.Rows[failed-1]["why"])
	}
	return r, nil
}

// trainPoint adds the rows of all systems at one setting.
func trainPoint(ctx context.Context, opt *TrainOptions, p *TrainPoint, store *layout.Store,
	r *Report) error {
	if slices.Contains(opt.Systems, "mmap") {
		if err := plainArrays(ctx, store); err != nil {
			return err
		}
	}
	first := len(r.Rows)
	for _, name := range opt.Systems {
		if opt.Progress != nil {
			opt.Progress(strings.TrimSpace("system "+name+" "+p.Value), int64(len(r.Rows)),
				int64(len(opt.Systems)*len(opt.Points)), "systems")
		}
		row, err := trainChild(ctx, opt, p, name)
		if ctx.Err() != nil {
			return fmt.Errorf("bench: train: interrupted after %d of %d rows: %w", len(r.Rows),
				len(opt.Systems)*len(opt.Points), ctx.Err())
		}
		if err != nil {
			row["why"] = joinWhy(row["why"], err.Error())
		}
		row["dim"], row["batch"] = store.Meta().Features[0].Dim, p.Config.Batch
		if p.Sweep != "" {
			row["sweep"], row["value"] = p.Sweep, p.Value
		}
		r.Rows = append(r.Rows, row)
	}
	note, err := sameBatches(r.Rows[first:])
	if note != "" {
		r.Notes = append(r.Notes, strings.TrimSpace(strings.Join([]string{p.Sweep, p.Value, note},
			" ")))
	}
	return err
}

// sameBatches compares the checksums of what systems loaded. Rows that were not measured have none.
func sameBatches(rows []Row) (note string, err error) {
	want, of, n := "", "", 0
	for _, row := range rows {
		crc, _ := row["batches_crc"].(string)
		name := fmt.Sprint(row["system"])
		s, err := findSystem(name)
		switch {
		case crc == "" || err == nil && s.approximate:
			continue
		case want == "":
			want, of = crc, name
		case crc != want:
			return "", fmt.Errorf("bench: train: %s loaded other batches (checksum %s) than %s "+
				"(%s): their times say nothing about each other", name, crc, of, want)
		}
		n++
	}
	if n < 2 {
		return "", nil
	}
	return fmt.Sprintf("%d systems loaded the same batches (checksum %s)", n, want), nil
}

// openFeatures opens a store that has something to load.
func openFeatures(ctx context.Context, dir string) (*layout.Store, error) {
	store, err := layout.OpenLive(ctx, vfs.Default, dir)
	if err != nil {
		return nil, err
	}
	if len(store.Meta().Features) == 0 {
		return nil, fmt.Errorf("bench: train: %s has no features to load", dir)
	}
	return store, nil
}

// plainArrays makes the arrays of the mmap baseline.
func plainArrays(ctx context.Context, store *layout.Store) (err error) {
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	_, err = makeCSC(ctx, store, dev)
	return err
}

// joinWhy adds a reason to those that a row has.
func joinWhy(have any, why string) string {
	if s, ok := have.(string); ok && s != "" {
		return s + "; " + why
	}
	return why
}

// trainChild runs one system in a process of its own. The row is never nil.
func trainChild(ctx context.Context, opt *TrainOptions, p *TrainPoint, name string) (Row, error) {
	row := Row{"system": name}
	for _, c := range trainColumns[1:] {
		row[c] = nil
	}
	cfg, err := p.config(name)
	if err != nil {
		return row, err
	}
	system, err := findSystem(name)
	if err != nil {
		return row, err
	}
	var group *mem.Cgroup
	if system.unbounded {
		row["why"] = "memory_bytes: not bounded"
	} else {
		row["memory_bytes"] = cfg.Memory
		if group, err = mem.NewCgroup(cfg.Memory); err != nil {
			row["why"] = "not in a cgroup, so the page cache is not bounded: " + err.Error()
		}
	}
	if err := coldFiles(vfs.Default, p.Store); err != nil {
		return row, errors.Join(err, group.Remove())
	}
	err = runChild(ctx, opt, TrainJob{Store: p.Store, System: name, Model: opt.Model,
		Config: cfg, Pace: opt.Pace}, group, row)
	if group == nil {
		return row, err
	}
	if peak, e := group.Peak(); e == nil {
		row["cgroup_peak_bytes"] = peak
	}
	if err != nil && group.Kills() > 0 {
		err = fmt.Errorf("out of memory: killed in its cgroup of %s",
			mem.FormatSize(cfg.Memory))
	}
	return row, errors.Join(err, group.Remove())
}

// coldFiles takes all files below a directory out of the page cache: those of the store, and what
// systems before left in prep.
func coldFiles(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("bench: list %s: %w", dir, err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if oserror.IsNotExist(err) {
			continue // another process's
		}
		if err == nil && info.IsDir() {
			err = coldFiles(fs, path)
		} else if err == nil && info.Mode().IsRegular() {
			err = dropCache(path)
		}
		if err != nil {
			return fmt.Errorf("bench: take %s out of the page cache: %w", path, err)
		}
	}
	return nil
}

// cancelDelay is how long a system may take to end after a Ctrl-C.
const cancelDelay = 10 * time.Second

// runChild starts gdb for a job, hands it the job and adds the row that it prints to row. The
// child's standard input stays open for as long as this process lives, and ends it when it closes.
func runChild(ctx context.Context, opt *TrainOptions, job TrainJob, group *mem.Cgroup,
	row Row) (err error) {
	input, err := json.Marshal(job)
	if err != nil {
		return err
	}
	args := []string{"bench", "train-system", "--memory", strconv.FormatInt(job.Config.Memory, 10)}
	if group != nil {
		args = append(args, "--cgroup", group.Dir())
	}
	cmd := exec.CommandContext(ctx, opt.Program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it removes its files
	cmd.WaitDelay = cancelDelay
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("bench: system %s: %w", job.System, err)
	}
	_, sent := stdin.Write(append(input, '\n')) // fails if the child ended, which says more
	err = errors.Join(cmd.Wait(), sent)
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		why := strings.TrimPrefix(lines[len(lines)-1], "gdb: ")
		if why == "" {
			why = err.Error()
		}
		return fmt.Errorf("bench: system %s: %s", job.System, why)
	}
	var measured Row
	if err := json.Unmarshal(stdout.Bytes(), &measured); err != nil {
		return fmt.Errorf("bench: system %s: read what it measured: %w", job.System, err)
	}
	for k, v := range measured {
		if k == "why" {
			v = joinWhy(row[k], fmt.Sprint(v))
		}
		row[k] = v
	}
	return nil
}
