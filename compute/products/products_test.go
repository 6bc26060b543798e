package products

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"gdb/compute/kernel/bf16"
	"gdb/internal/files"
)

var levels = []string{"slow", "fast"}

var rates = []bf16.Rate{{Level: "fast", GFLOPS: 2}, {Level: "slow", GFLOPS: 1}}

// write makes the file of these bytes.
func write(t *testing.T, fs vfs.FS, f *File, content string) {
	t.Helper()
	if err := fs.MkdirAll("kept", 0o700); err != nil {
		t.Fatal(err)
	}
	to, err := fs.Create(f.Path(), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(to, content); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKept: what is kept is found again for the same levels, and nothing else is.
func TestKept(t *testing.T) {
	fs := vfs.NewMem()
	f := In(fs, "kept")
	if got := f.Kept(levels); got != nil {
		t.Fatalf("%v of no file", got)
	}
	if err := f.Keep(levels, rates); err != nil {
		t.Fatal(err)
	}
	if got := In(fs, "kept").Kept(levels); !slices.Equal(got, rates) {
		t.Errorf("kept %v, want %v", got, rates)
	}
	if got := f.Kept([]string{"slow", "other"}); got != nil {
		t.Errorf("%v of other levels", got)
	}
}

// TestDamaged: a file of something else has no effect, and Keep says where it is.
func TestDamaged(t *testing.T) {
	fs := vfs.NewMem()
	f := In(fs, "kept")
	write(t, fs, f, "{")
	if got := f.Kept(levels); got != nil {
		t.Errorf("%v of a damaged file", got)
	}
	if err := f.Keep(levels, rates); err == nil || !strings.Contains(err.Error(), f.Path()) {
		t.Errorf("kept in a damaged file: %v", err)
	}
	for _, wrong := range []string{`[{"level":"fast","gflops":0},{"level":"slow","gflops":0}]`,
		`[{"level":"slow","gflops":1},{"level":"fast","gflops":2}]`,
		`[{"level":"fast","gflops":2}]`, `[]`} {
		write(t, fs, f, fmt.Sprintf("{%q: {\"rates\": %s}}", name(levels), wrong))
		if got := f.Kept(levels); got != nil {
			t.Errorf("%v of %s", got, wrong)
		}
	}
}

// TestBounded: the oldest of too many processors give way.
func TestBounded(t *testing.T) {
	f := In(vfs.NewMem(), "kept")
	for i := range files.RecordsMost + 3 {
		if err := f.Keep([]string{fmt.Sprint(i), "fast"}, rates); err != nil {
			t.Fatal(err)
		}
	}
	all, err := f.read()
	if err != nil || len(all) != files.RecordsMost {
		t.Errorf("%d kept, want %d; %v", len(all), files.RecordsMost, err)
	}
}

func TestProcessor(t *testing.T) {
	if p := processor(); p == "" || p != processor() {
		t.Errorf("the processor is %q", p)
	}
	t.Log(processor())
}

// TestText: the text names all levels, where they were kept, and why there is no AMX.
func TestText(t *testing.T) {
	none := errors.New("none here")
	for want, c := range map[string]bf16.Choice{
		"fast, 2 GFLOP/s a thread; slow 1 (measured once on this machine)": {Rates: rates,
			Kept: true},
		"fast, 2 GFLOP/s a thread; slow 1 (measured now, and kept); not AMX: none here": {
			Rates: rates, NoAMX: none},
		"fast, 2 GFLOP/s a thread; slow 1 (measured now, not kept: none here)": {Rates: rates,
			NotKept: none},
		"fast; not AMX: none here": {Rates: rates[:1], NoAMX: none},
	} {
		if got := Text(c); got != "products of bf16 on the CPU: "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
