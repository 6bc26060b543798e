package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// fio runs the program of that name, the measure of what the disk gives.
type fio struct {
	opt     *IOOptions
	program string
	missing error // why it is not run
}

// fioResult is what one run of fio reports.
type fioResult struct {
	reads, cpuMicros float64 // reads a second, CPU a read
}

func newFio(opt *IOOptions) *fio {
	f := &fio{opt: opt}
	if !opt.Fio {
		f.missing = errors.New("fio was not asked for: --fio")
		return f
	}
	program, err := exec.LookPath("fio")
	if err != nil {
		f.missing = errors.New("fio is not installed: apt-get install fio")
	}
	f.program = program
	return f
}

// run reads path as our ring does: direct, io_uring, the same block and depth, in one thread; and
// with registered files and buffers, which is the fastest that fio can do.
func (f *fio) run(ctx context.Context, path string, block int) (res fioResult, err error) {
	if f.missing != nil {
		return res, f.missing
	}
	cmd := exec.CommandContext(ctx, f.program, "--name=gdb", "--filename="+path, "--readonly",
		"--rw=randread", "--bs="+strconv.Itoa(block), "--size="+strconv.FormatInt(f.opt.Size, 10),
		"--direct=1", "--ioengine=io_uring", "--iodepth="+strconv.Itoa(f.opt.Depth),
		"--fixedbufs=1", "--registerfiles=1", "--norandommap=1", "--randrepeat=0", "--time_based=1",
		"--runtime="+strconv.Itoa(int(f.opt.Seconds*1000))+"ms", "--output-format=json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return res, fmt.Errorf("fio: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return parseFio(out)
}

// parseFio reads what fio prints as JSON; warnings may stand before it.
func parseFio(out []byte) (res fioResult, err error) {
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
	return fioResult{reads: j.Read.IOPS, cpuMicros: used / j.Read.Total}, nil
}
