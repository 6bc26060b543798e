package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

const (
	ioRepeats   = 3       // the median of three rounds is reported
	ioCallers   = 2       // two batches under way keep the queue full when one of them runs out
	ioBatch     = 1024    // requests in a batch
	ioBatchMax  = 8 << 20 // bytes of a batch
	ioStampUnit = 4096    // each 4 KiB of the file begins with its number
	ioStampSalt = 0x9e3779b97f4a7c15
	ioFileName  = "gdb-bench-io"
)

// IOOptions configure the read benchmark.
type IOOptions struct {
	// Dir is where the file is made, and removed afterwards: a directory on the disk to measure.
	Dir string
	// Size of the file. Default 4 GiB.
	Size int64
	// Blocks lists the lengths of reads, multiples of 4096. Default 4 KiB and 64 KiB.
	Blocks []int
	// Depth bounds the reads in flight. Default 32.
	Depth int
	// Backends lists what to measure. Default uring and pread.
	Backends []blockdev.Backend
	// Fio measures fio back to back with each of ours: io_uring, direct, the same file, block and
	// depth, with registered files and buffers.
	Fio bool
	// Seconds is how long each of the three measurements of a row lasts. Default 2.
	Seconds float64
}

func (o *IOOptions) setDefaults() error {
	o.Size = cmp.Or(o.Size, 4<<30)
	if len(o.Blocks) == 0 {
		o.Blocks = []int{4 << 10, 64 << 10}
	}
	o.Depth = cmp.Or(o.Depth, 32)
	if len(o.Backends) == 0 {
		o.Backends = []blockdev.Backend{blockdev.URing, blockdev.Pread}
	}
	o.Seconds = cmp.Or(o.Seconds, 2)
	largest := slices.Max(o.Blocks)
	for _, b := range o.Blocks {
		if b <= 0 || b%ioStampUnit != 0 {
			return optionErrorf("bench: io: block of %d bytes is not a multiple of %d", b,
				ioStampUnit)
		}
	}
	if o.Size < int64(largest) {
		return optionErrorf("bench: io: a file of size %s is smaller than a block of %s",
			mem.FormatSize(o.Size), mem.FormatSize(int64(largest)))
	}
	for _, b := range o.Backends {
		if !slices.Contains(blockdev.Backends(), b) {
			return optionErrorf("bench: io: backend %q is not one of %v", b,
				blockdev.Backends())
		}
	}
	if !(o.Seconds > 0) || o.Depth < 0 {
		return optionErrorf("bench: io: %g seconds, depth %d: want positive numbers", o.Seconds,
			o.Depth)
	}
	return nil
}

// ioResult is one measurement.
type ioResult struct {
	reads, cpuMicros float64 // reads a second, CPU a read
}

// ioCell is one row: a backend and a block length, measured ioRepeats times.
type ioCell struct {
	backend blockdev.Backend
	block   int
	ours    []ioResult
	fio     []fioResult
	why     string // why there is no measurement, or no ratio
	failed  bool
}

// IO reads a file at random with each backend and block length, and beside fio. The rounds are
// interleaved, and each ratio is of two measurements that follow one another, so that a machine
// that slows down slows both.
func IO(ctx context.Context, opt IOOptions) (_ *Report, err error) {
	if err := opt.setDefaults(); err != nil {
		return nil, err
	}
	path := vfs.Default.PathJoin(opt.Dir, ioFileName)
	defer func() {
		if e := vfs.Default.Remove(path); e != nil && !oserror.IsNotExist(e) {
			err = errors.Join(err, fmt.Errorf("bench: io: remove the file: %w", e))
		}
	}()
	if err := makeIOFile(ctx, path, opt.Size); err != nil {
		return nil, fmt.Errorf("bench: io: make a file of %s: %w", mem.FormatSize(opt.Size), err)
	}
	var cells []*ioCell
	for _, block := range opt.Blocks {
		for _, backend := range opt.Backends {
			cells = append(cells, &ioCell{backend: backend, block: block})
		}
	}
	beside := findFio(opt.Fio)
	for range ioRepeats {
		for _, c := range cells {
			if err := c.measure(ctx, &opt, path, beside); err != nil {
				return nil, fmt.Errorf("bench: io: %s, blocks of %d: %w", c.backend, c.block, err)
			}
		}
	}
	r := newReport("io", "backend", "block_bytes", "depth", "reads_per_s", "bytes_per_s",
		"cpu_us_per_read", "fio_ratio")
	for _, c := range cells {
		r.Rows = append(r.Rows, c.rows(&opt)...)
	}
	return r, nil
}

// measure adds one measurement of ours and of fio to the cell.
func (c *ioCell) measure(ctx context.Context, opt *IOOptions, path string,
	program fioProgram) error {
	if c.failed {
		return nil
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: c.backend, QueueDepth: opt.Depth})
	if err != nil {
		c.failed, c.why = true, err.Error()
		return nil
	}
	res, err := readAtRandom(ctx, dev, path, c.block, opt)
	info := dev.Info()
	err = errors.Join(err, dev.Close())
	if err != nil {
		return err
	}
	c.ours = append(c.ours, res)
	if info.Backend != c.backend {
		c.why = info.Why
	}
	beside, err := program.Run(ctx, fioJob{Path: path, Block: c.block, Size: opt.Size,
		Depth: opt.Depth, Seconds: opt.Seconds})
	if err != nil {
		c.why = err.Error()
		return ctx.Err()
	}
	c.fio = append(c.fio, beside)
	return nil
}

// readAtRandom reads for opt.Seconds and returns the rates. A few of the blocks are checked.
func readAtRandom(ctx context.Context, dev blockdev.Device, path string, block int,
	opt *IOOptions) (res ioResult, err error) {
	f, err := dev.OpenFile(vfs.Default, path)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := dropCache(path); err != nil {
		return res, err
	}
	n := max(1, min(ioBatch, ioBatchMax/block))
	arena, err := mem.NewArena(nil, "benchmark buffers", int64(ioCallers*n*block))
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, arena.Free()) }()
	clear(arena.Bytes()) // the first touch of a page is not the read's work
	var (
		callers sync.WaitGroup
		done    atomic.Int64
		errs    = make([]error, ioCallers)
		start   = time.Now()
		cpu     = processCPU()
		end     = start.Add(time.Duration(opt.Seconds * float64(time.Second)))
	)
	for caller := range ioCallers {
		callers.Go(func() {
			own := arena.Bytes()[caller*n*block : (caller+1)*n*block]
			reads, err := readUntil(ctx, dev, end, f, own, block)
			done.Add(reads)
			errs[caller] = err
		})
	}
	callers.Wait()
	took, used := time.Since(start), processCPU()-cpu
	reads := float64(done.Load())
	res = ioResult{reads: reads / took.Seconds(), cpuMicros: float64(used.Microseconds()) / reads}
	return res, errors.Join(errs...)
}

// readUntil reads random blocks of a file into buf, batch after batch, and counts them.
func readUntil(ctx context.Context, dev blockdev.Device, end time.Time, f blockdev.File,
	buf []byte, block int) (reads int64, err error) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	reqs := make([]blockdev.Request, len(buf)/block)
	for time.Now().Before(end) {
		for i := range reqs {
			reqs[i] = blockdev.Request{File: f, Off: rng.Int64N(f.Size()/int64(block)) *
				int64(block), Buf: buf[i*block : (i+1)*block]}
		}
		if err := dev.ReadBatch(ctx, reqs); err != nil {
			return reads, err
		}
		one := reqs[rng.IntN(len(reqs))]
		if got := binary.LittleEndian.Uint64(one.Buf); got != stamp(one.Off) {
			return reads, fmt.Errorf("wrong bytes at offset %d of %s", one.Off, f.Path())
		}
		reads += int64(len(reqs))
	}
	return reads, nil
}

func stamp(off int64) uint64 { return uint64(off/ioStampUnit) ^ ioStampSalt }

// rows returns the cell as the report shows it: the median of the rounds, and the same for fio.
func (c *ioCell) rows(opt *IOOptions) []Row {
	row := Row{"backend": string(c.backend), "block_bytes": c.block, "depth": opt.Depth,
		"reads_per_s": nil, "bytes_per_s": nil, "cpu_us_per_read": nil, "fio_ratio": nil,
		"why": nil}
	if c.why != "" {
		row["why"] = c.why
	}
	if c.failed || len(c.ours) == 0 {
		return []Row{row}
	}
	reads := median(c.ours, func(r ioResult) float64 { return r.reads })
	row["reads_per_s"], row["bytes_per_s"] = reads, reads*float64(c.block)
	row["cpu_us_per_read"] = median(c.ours, func(r ioResult) float64 { return r.cpuMicros })
	if len(c.fio) < len(c.ours) {
		return []Row{row}
	}
	ratios := make([]float64, len(c.fio))
	for i, f := range c.fio {
		ratios[i] = c.ours[i].reads / f.Reads
	}
	row["fio_ratio"] = median(ratios, func(r float64) float64 { return r })
	reads = median(c.fio, func(r fioResult) float64 { return r.Reads })
	return []Row{row, {"backend": "fio beside " + string(c.backend), "block_bytes": c.block,
		"depth": opt.Depth, "reads_per_s": reads, "bytes_per_s": reads * float64(c.block),
		"cpu_us_per_read": median(c.fio, func(r fioResult) float64 { return r.CPUMicros }),
		"fio_ratio":       1.0, "why": nil}}
}

func median[T any](all []T, value func(T) float64) float64 {
	v := make([]float64, len(all))
	for i, x := range all {
		v[i] = value(x)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// fioProgram is fio, or why it is not run.
type fioProgram struct {
	path    string
	missing error
}

// fioJob is what fio reads: a file of Size bytes, in blocks of Block bytes, Depth at a time.
type fioJob struct {
	Path    string
	Block   int
	Size    int64
	Depth   int
	Seconds float64
}

// fioResult is what one run of fio reports.
type fioResult struct {
	Reads, CPUMicros float64 // reads a second, CPU a read
}

// findFio looks for fio, if it is wanted.
func findFio(wanted bool) fioProgram {
	if !wanted {
		return fioProgram{missing: errors.New("fio was not asked for: --fio")}
	}
	path, err := exec.LookPath("fio")
	if err != nil {
		return fioProgram{missing: errors.New("fio is not installed: apt-get install fio")}
	}
	return fioProgram{path: path}
}

// Run reads as our ring does: direct, io_uring, the same block and depth, in one thread; and with
// registered files and buffers, which is the fastest that fio can do.
func (p fioProgram) Run(ctx context.Context, j fioJob) (res fioResult, err error) {
	if p.missing != nil {
		return res, p.missing
	}
	cmd := exec.CommandContext(ctx, p.path, "--name=gdb", "--filename="+j.Path, "--readonly",
		"--rw=randread", "--bs="+strconv.Itoa(j.Block), "--size="+strconv.FormatInt(j.Size, 10),
		"--direct=1", "--ioengine=io_uring", "--iodepth="+strconv.Itoa(j.Depth),
		"--fixedbufs=1", "--registerfiles=1", "--norandommap=1", "--randrepeat=0", "--time_based=1",
		"--runtime="+strconv.Itoa(int(j.Seconds*1000))+"ms", "--output-format=json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return res, fmt.Errorf("fio: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return parse(out)
}

// parse reads what fio prints as JSON; warnings may stand before it.
func parse(out []byte) (res fioResult, err error) {
	var report struct {
		Jobs []struct {
			Error   int     `json:"error"`
			UserCPU float64 `json:"usr_cpu"`
			SysCPU  float64 `json:"sys_cpu"`
			Read    struct {
				IOPS    float64 `json:"iops"`
				Total   float64 `json:"total_ios"`
				Runtime float64 `json:"runtime"` // milliseconds
			} `json:"read"`
		} `json:"jobs"`
	}
	_, body, ok := strings.Cut(string(out), "{")
	if !ok {
		return res, errors.New("fio: its output is not JSON")
	}
	if err := json.Unmarshal([]byte("{"+body), &report); err != nil {
		return res, fmt.Errorf("fio: read its output: %w", err)
	}
	if len(report.Jobs) != 1 || report.Jobs[0].Error != 0 || report.Jobs[0].Read.IOPS <= 0 {
		return res, errors.New("fio: it reports no reads")
	}
	j := report.Jobs[0]
	used := (j.UserCPU + j.SysCPU) / 100 * j.Read.Runtime * 1000
	return fioResult{Reads: j.Read.IOPS, CPUMicros: used / j.Read.Total}, nil
}

// makeIOFile writes size bytes that do not compress, with a stamp every ioStampUnit bytes, and
// syncs them. A file without real bytes would be answered by the file system alone.
func makeIOFile(ctx context.Context, path string, size int64) (err error) {
	f, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size &^= ioStampUnit - 1
	rng := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 1<<20)
	for off := int64(0); off < size && ctx.Err() == nil; {
		n := min(int64(len(buf)), size-off)
		for i := 0; i < int(n); i += 8 {
			v := rng.Uint64()
			if i%ioStampUnit == 0 {
				v = stamp(off + int64(i))
			}
			binary.LittleEndian.PutUint64(buf[i:], v)
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		off += n
	}
	return errors.Join(ctx.Err(), f.Sync())
}

// dropCache takes the file's pages out of the page cache, so that reads through it start cold.
func dropCache(path string) (err error) {
	f, err := vfs.Default.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Fsync(int(f.Fd())); err != nil { // what is not written cannot be dropped
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := blockdev.DropCache(f, 0, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// processCPU returns the user and system time of this process, all its threads together.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
