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
