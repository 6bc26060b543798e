// Package bench measures gdb against something real, in one run, and prints the ratio: what the
// documentation claims is made by these functions, and anyone can rerun them. A file measures one
// thing.
package bench

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"

	"gdb/internal/mem"

	"golang.org/x/sys/cpu"
)

// Row is one measurement; the names of its fields are part of the command line's contract. A
// field that could not be measured is nil, with the reason in "why".
type Row map[string]any

// Report is the result of one benchmark.
type Report struct {
	Bench   string   `json:"bench"`
	Machine Machine  `json:"machine"`
	Rows    []Row    `json:"rows"`
	Notes   []string `json:"notes,omitempty"` // what holds for all rows
	Columns []string `json:"-"`               // the order of fields in a table
}

// Machine describes where a benchmark ran.
type Machine struct {
	CPU         string   `json:"cpu"`
	Cores       int      `json:"cores"`
	Features    []string `json:"features"`
	MemoryBytes int64    `json:"memory_bytes"`
	OS          string   `json:"os"`
	Go          string   `json:"go"`
}

// newReport returns an empty report of this machine.
func newReport(name string, columns ...string) *Report {
	return &Report{Bench: name, Machine: thisMachine(), Columns: columns}
}

func thisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), CPU: cpuModel(), MemoryBytes: mem.Available()}
	for _, f := range []struct {
		name string
		has  bool
	}{{"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA}, {"avx512f", cpu.X86.HasAVX512F}} {
		if f.has {
			m.Features = append(m.Features, f.name)
		}
	}
	return m
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo") //lint:os the machine's description is no store file
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t: ")
		}
	}
	return runtime.GOARCH
}

// OptionError is an option that makes no sense: the caller's to mend, and found before anything was
// done.
type OptionError struct{ what string }

// Error says what makes no sense, and what would.
func (e *OptionError) Error() string { return e.what }

// optionErrorf formats an Error.
func optionErrorf(format string, args ...any) error {
	return &OptionError{what: fmt.Sprintf(format, args...)}
}
