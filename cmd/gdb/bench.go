package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gdb/bench"
	"gdb/blockdev"
	"gdb/cmd/gdb/benches"
	"gdb/cmd/gdb/cli"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// benchTrainLong says what is compared and what the columns are.
const benchTrainLong = `Train, or with --model none only load, some epochs with each system in a
process and a memory cgroup of its own, beginning with all files of the store
out of the page cache.

Systems are
  mmap      plain arrays (made once, in STORE/prep/csc) and features through
            memory maps advised for random access, read by 16, 32 or 64
            goroutines: those that the first epoch found best
  macro     gdb with --strategy macro, on a store of partitions: its batches are
            others, and it wants a --model
  memory    everything resident, not bounded by --memory
  others    gdb with the feature cache of that name, auto the one that it
            chooses itself; static is a static feature cache and, where the
            topology is paged, a static neighbor cache (the baseline Ali+PG of
            Ginex), split as the plan finds best unless --neighbor-cache and
            --feature-cache say

All but macro are given the same batches: a checksum of their nodes, edges,
labels and some features is compared, and if it differs the command fails.
--device-iops and --device-bandwidth slow reads down as of another disk, or a
volume over a network, page faults of mmap excepted. A system that fails, or is
killed in its cgroup, has a row without figures and the reason below the table;
the command fails if none could be measured. Ctrl-C ends the system under way
and prints the rows so far.

Columns, means of all epochs unless said otherwise, so that what is sampled,
planned and filled ahead in one of them counts for all:
  epoch_s            an epoch by the clock; last_epoch_s the last one, batch_s
                     a batch
  open_s             before the first epoch: what static and memory load then,
                     for one
  total_s            from opening the store to the end of the last epoch
  sample_s gather_s  how long these stages were busy in an epoch, in all
                     threads together; they
  compute_s          overlap, so they add up to more than epoch_s
  io_wait_s          how long the consumer of batches waited while reads were
                     under way
  bytes_read         read from storage as the kernel counts for the process,
                     page faults included
  hit_ratio          feature rows found in the cache
  peak_rss_bytes     of the process; of mmap it has pages of the page cache
  cgroup_peak_bytes  of the cgroup, with the page cache
--json has besides, in "epochs", the figures of each epoch, bytes_written, and
what was planned.`

func (a *app) benchTrainCommand() *cobra.Command {
	t := &trainFlags{}
	var systems, sweep, plots, bandwidth string
	var pace blockdev.Pace
	cmd := &cobra.Command{
		Use: "train STORE", Args: cli.ExactArgs(1),
		Short: "Epochs past memory: caches, mmap, and everything in memory",
		Long:  benchTrainLong,
		Example: `  gdb bench train big.gdb --memory 1GiB --systems mmap,static,sieve,auto,memory
  gdb bench train big.gdb --memory 1GiB --systems mmap,auto --model sage
  gdb bench train big.gdb --systems static,sieve --sweep memory=512MiB,1GiB \
      --plot plots`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := t.benchOptions(a, cmd, args[0], sweep)
			if err != nil {
				return err
			}
			opt.Systems, opt.Pace = strings.Split(systems, ","), pace
			if opt.Pace.Bytes, err = bytesASecond(bandwidth); err != nil {
				return err
			}
			if err := opt.Validate(); err != nil {
				return cli.Usage(err)
			}
			p := a.Progress()
			opt.Progress = p.Update
			r, err := bench.Train(cmd.Context(), opt)
			p.Finish()
			if r == nil || len(r.Rows) == 0 {
				return err
			}
			if plots != "" {
				paths, failed := bench.PlotTrain(a.FS, plots, r)
				a.NotePlots(paths)
				err = cli.FirstError(err, failed)
			}
			return cli.FirstError(err, benches.Print(&a.App, r, t.json))
		},
	}
	f := cmd.Flags()
	f.StringVar(&systems, "systems", "mmap,static,sieve,auto,memory",
		"what is compared, in order, of "+
			message.OneOf(bench.Systems()))
	f.StringVar(&sweep, "sweep", "", "FLAG=V1,V2,…: measure with each value of a flag, such as "+
		"memory, batch or feature-cache; store=DIR1,DIR2 for stores beside STORE")
	f.StringVar(&plots, "plot", "", cli.PlotHelp)
	f.Float64Var(&pace.Reads, "device-iops", 0, "the most reads of 256 KiB a second, to try a "+
		"slower device; 0 leaves it as it is")
	f.StringVar(&bandwidth, "device-bandwidth", "0", "the most bytes read a second, such as "+
		"500MB; 0 leaves it as it is")
	f.StringVar(&t.tensorboard, "tensorboard", "", tensorboardHelp)
	t.bind(f, setting.BenchTrain, "model=none", "epochs=3")
	f.Lookup("model").Usage += ", or none: loading alone"
	return cmd
}

// bytesASecond reads --device-bandwidth.
func bytesASecond(flag string) (float64, error) {
	n, err := mem.ParseSize(flag)
	if err != nil {
		return 0, cli.Usage(fmt.Errorf("--device-bandwidth: %w", err))
	}
	return float64(n), nil
}

// benchOptions returns the flags of a training, as far as they are about its speed; one point for
// each value of the sweep.
func (t *trainFlags) benchOptions(a *app, cmd *cobra.Command, store,
	sweep string) (opt bench.TrainOptions, err error) {
	opt.Model = cmd.Flags().Lookup("model").Value.String()
	if opt.Model == "none" { // the memory is split as for the default
		t.line.Start("model=" + setting.Default().Model)
	}
	if opt.Program, err = os.Executable(); err != nil {
		return opt, err
	}
	name, list, _ := strings.Cut(sweep, "=")
	for _, value := range strings.Split(list, ",") {
		p := bench.TrainPoint{Sweep: name, Value: value, Store: store}
		switch {
		case name == "store":
			p.Store = filepath.Join(filepath.Dir(store), value)
		case name != "":
			if err := a.setSwept(cmd.Flags(), name, value); err != nil {
				return opt, err
			}
		}
		if p.Config, err = t.node(a, cmd.Flags(), nil); err != nil {
			return opt, err
		}
		opt.Points = append(opt.Points, p)
	}
	return opt, nil
}

// setSwept sets a flag to one value of a sweep.
func (a *app) setSwept(flags *pflag.FlagSet, name, value string) error {
	f := flags.Lookup(name)
	if r := setting.Find(name); f == nil || r == nil || !r.In(setting.BenchTrain) && !r.Global {
		return cli.Usage(fmt.Errorf("--sweep %s: want FLAG=V1,V2 of a flag of training, or store",
			name))
	}
	if err := f.Value.Set(value); err != nil {
		return cli.Usage(fmt.Errorf("--sweep %s=%s: %w", name, value, err))
	}
	if name == "memory" {
		return a.SetMemory()
	}
	return nil
}

// benchSystemCommand returns what bench train runs for each system: it reads the job from its
// standard input and prints the row.
func (a *app) benchSystemCommand() *cobra.Command {
	var group string
	cmd := &cobra.Command{
		Use: "train-system", Hidden: true, Args: cli.ExactArgs(0),
		Short: "Measure one system; bench train runs it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if group != "" {
				return rejoin(group, a.MemoryFlag)
			}
			var job bench.TrainJob
			if err := json.NewDecoder(a.In).Decode(&job); err != nil {
				return cli.Usage(fmt.Errorf("bench train-system: no job on standard input: %w",
					err))
			}
			job.Config.Profiles = cli.ProfilesDir()
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			go func() { // until this process ends, or the one that wants the row
				defer bug.Catch()
				_, _ = io.Copy(io.Discard, a.In)
				stop()
			}()
			row, err := bench.TrainSystem(ctx, job)
			if err != nil {
				return err
			}
			return a.PrintLine(row)
		},
	}
	cmd.Flags().StringVar(&group, "cgroup", "", "memory cgroup to run in")
	return cmd
}

// rejoin executes this command anew in a cgroup, so that all its memory is of that group.
func rejoin(group, memory string) error {
	if err := mem.JoinCgroup(group); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	err = syscall.Exec(program, []string{program, "bench", "train-system", "--memory", memory},
		os.Environ())
	return errors.Join(errors.New("bench train-system: start anew in the cgroup"), err)
}
