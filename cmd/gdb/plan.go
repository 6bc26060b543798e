package main

import (
	"fmt"

	"gdb/bench"
	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/train"
	"gdb/train/plan"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

func (a *app) planCommand() *cobra.Command {
	t := &trainFlags{}
	cmd := &cobra.Command{
		Use: "plan STORE", Short: "Say what a training would take: memory, reads, time",
		Long: `Plan a training and run nothing of it: how --memory is split, and what an
epoch is expected to read and to take, from a few sampled batches, a step on
one of them and a profile of the device. The profile is measured once and kept
in the store's catalog, and for a day for other stores: see gdb help
environment. With --task link it says where the vectors are and, if they are on
disk, which partitions are in memory when, and why. It takes the flags of gdb
train.`,
		Example: `  gdb plan big.gdb --memory 4GiB --fanout 10,10,10
  gdb plan big.gdb --memory 4GiB --cache sieve --json
  gdb plan kg.gdb --task link --memory 1GiB --order tlbeta`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.plan(cmd, t, args[0]) },
	}
	t.bindRun(cmd.Flags(), setting.Plan)
	cmd.Flags().BoolVar(&t.ops, "ops", false, "print the operations of a step, and measure them")
	return cmd
}

func (a *app) plan(cmd *cobra.Command, t *trainFlags, dir string) (err error) {
	if link, err := a.trainsLink(cmd, t, dir); err != nil || link {
		if err == nil {
			err = a.planLink(cmd, t, dir)
		}
		return err
	}
	cfg, err := t.node(a, cmd.Flags())
	if err != nil {
		return err
	}
	st, dev, err := a.OpenStore(cmd.Context(), dir, cfg.IO)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	if t.ops {
		return a.planOperations(cmd, t, st, dev, cfg)
	}
	p, err := train.MakePlan(cmd.Context(), st, dev, cfg)
	if err != nil {
		return err
	}
	if t.json {
		return a.PrintJSON(p)
	}
	return a.printTrainPlan(p)
}

func (a *app) planLink(cmd *cobra.Command, t *trainFlags, dir string) (err error) {
	c, err := t.link(a, cmd.Flags())
	if err != nil {
		return err
	}
	st, dev, err := a.OpenStore(cmd.Context(), dir, t.line.IO())
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	return linkcmd.Plan(a.linkEnv(), st, c, t.json)
}

// opIndent is where the operations of a step stand in a line.
const opIndent = 9 + 1 + 9 + 1 + 13 + 2

// planOperations prints the operations of a step, what they were taken to cost, and what they took.
func (a *app) planOperations(cmd *cobra.Command, t *trainFlags, st *layout.Store,
	dev blockdev.Device, cfg train.Config) error {
	ops, err := bench.MeasureStep(cmd.Context(), st, dev, cfg)
	if err != nil {
		return err
	}
	if t.json {
		return a.PrintJSON(map[string]any{"operations": ops})
	}
	w := &cli.Lines{W: a.Out}
	w.Printf("%9s %9s %13s  operation\n", "expected", "measured", "shape")
	total := 0.0
	for _, o := range ops {
		expected := "-"
		if o.EstimatedMS > 0 {
			expected = fmt.Sprintf("%.2f ms", o.EstimatedMS)
		}
		shape := fmt.Sprintf("%d x %d", o.Rows, o.Cols)
		text := message.WrapIndented(o.Text, opIndent)
		w.Printf("%9s %9s %13s  %s\n", expected, fmt.Sprintf("%.2f ms", o.MeasuredMS), shape,
			text[opIndent:])
		total += o.MeasuredMS
	}
	w.Printf("%9s %9s\n", "", fmt.Sprintf("%.1f ms", total))
	return w.Err
}

// printTrainPlan prints the shares of the memory and the costs of an epoch.
func (a *app) printTrainPlan(p *plan.Plan) error {
	w := &cli.Lines{W: a.Out}
	for _, pool := range p.Pools() {
		w.Printf("%-11s %s\n", poolName(pool.Device), mem.FormatSize(pool.Bytes))
		for _, part := range pool.Parts {
			what := ""
			if part.What != "" {
				what = " (" + part.What + ")"
			}
			w.Printf("  %-15s %10s%s\n", part.Name, mem.FormatSize(part.Bytes), what)
		}
		w.Printf("  %-15s %10s\n", "left", mem.FormatSize(pool.Left()))
	}
	if p.Partitions != nil {
		printPartitions(w, p.Partitions)
		return w.Err
	}
	f := p.Forecast
	if f == nil {
		w.Printf("epoch       not known: there is no room to sample batches\n")
		return w.Err
	}
	w.Field("batches", "%s of about %s nodes and %s edges; %d sampled, %.0f%% of their nodes "+
		"different", cli.Count(f.Batches), cli.Count(uint64(f.Nodes)), cli.Count(uint64(f.Edges)),
		f.Sampled, 100*f.Unique)
	w.Printf("epoch       read %s (lists %s), hit %.1f%%\n", mem.FormatSize(f.Read),
		mem.FormatSize(f.Lists), 100*f.Hit)
	if p.OnDevice != nil {
		on := f.DeviceHit
		host := (1 - on) * f.Hit
		w.Field("rows", "%.1f%% on the device, %.1f%% in the host's cache, %.1f%% read; %s of "+
			"them are sent a batch", 100*on, 100*host, 100*(1-on-host),
			mem.FormatSize(int64(f.Sent)))
		if ways := p.BusWays(); ways != "" {
			w.Field("bus", "%s", ways)
		}
	}
	w.Field("time", "sample %.1fs, gather %.1fs, compute %.1fs: epoch %.1fs, bound by %s; %.1fs "+
		"before the first", f.Sample, f.Gather, f.Compute, f.Time, f.Binding, f.Start)
	if b := p.Superbatch; b != nil {
		w.Field("disk", "%s at most while it runs, in the store's prep/; sweeps for the rows of "+
			"an epoch take %.1fs, %.1fs of it beside training", mem.FormatSize(b.Storage), f.Sweep,
			f.Beside)
	}
	if why := p.Why(); why != "" {
		w.Field("chosen", "%s", why)
	}
	d := f.Device
	w.Field("device", "%.0f random reads/s of %s, in sequence %s/s, written %s/s",
		d.RandomReads, mem.FormatSize(int64(d.RowBytes)), mem.FormatSize(int64(d.Sequential)),
		mem.FormatSize(int64(1/d.Write.Seconds)))
	w.Field("cores", "%.1f, %.0f GFLOP/s, a row is copied in %.0f ns, found in a cache and "+
		"copied in %.0f ns", d.Cores, d.GFLOPS, 1e9*d.Copy.CPU, 1e9*d.Hit.CPU)
	if d.Unwritten != "" {
		w.Field("note", "writing could not be timed, and is taken to be as fast as reading: %s",
			d.Unwritten)
	}
	if d.Kept != "" {
		w.Field("note", "the device's profile could not be kept: %s", d.Kept)
	}
	return w.Err
}

// printPartitions prints how epochs go through partitions, and why.
func printPartitions(w *cli.Lines, p *plan.Partitions) {
	w.Field("order", "%s", p.Order)
	for i, line := range p.Lines {
		name := ""
		if i == 0 {
			name = "why"
		}
		w.Field(name, "%s", line)
	}
	w.Field("epoch", "%d sets of %d of %d partitions; read %s of features, %s of lists", p.Sets,
		p.InMemory, p.Parts, mem.FormatSize(p.Read), mem.FormatSize(p.Lists))
}

// poolName names the memory of a device: the host's is just memory.
func poolName(device string) string {
	if device == plan.Host {
		return "memory"
	}
	return device + " memory"
}
