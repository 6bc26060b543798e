package main

import (
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			r := &request{app: a, cmd: cmd, flags: t, store: args[0], plans: true}
			return r.do()
		},
	}
	t.bindRun(cmd.Flags(), setting.Plan)
	cmd.Flags().BoolVar(&t.ops, "ops", false, "print the operations of a step, and measure them")
	return cmd
}

// printTrainPlan prints the shares of the memory and the costs of an epoch.
func (a *app) printTrainPlan(p *plan.Plan) error {
	w := &cli.Lines{W: a.Out}
	for _, pool := range p.Pools() {
		const longest = 15
		w.Pool(poolName(pool.Device), &pool, longest)
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
	w.Reasons(p.Lines)
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
