package bf16

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"gdb/internal/files"
)

var processorLevels = []string{"slow", "fast"}

var rates = []Rate{{Level: "fast", GFLOPS: 2}, {Level: "slow", GFLOPS: 1}}

// write makes the file of these bytes.
func write(t *testing.T, fs vfs.FS, f *RatesFile, content string) {
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

// TestKept: what is kept is found again for the same processorLevels, and nothing else is.
func TestKept(t *testing.T) {
	fs := vfs.NewMem()
	f := RatesIn(fs, "kept")
	if got := f.Kept(processorLevels); got != nil {
		t.Fatalf("%v of no file", got)
	}
	if err := f.Keep(processorLevels, rates); err != nil {
		t.Fatal(err)
	}
	if got := RatesIn(fs, "kept").Kept(processorLevels); !slices.Equal(got, rates) {
		t.Errorf("kept %v, want %v", got, rates)
	}
	if got := f.Kept([]string{"slow", "other"}); got != nil {
		t.Errorf("%v of other processorLevels", got)
	}
}

// TestDamaged: a file of something else has no effect, and Keep says where it is.
func TestDamaged(t *testing.T) {
	fs := vfs.NewMem()
	f := RatesIn(fs, "kept")
	write(t, fs, f, "{")
	if got := f.Kept(processorLevels); got != nil {
		t.Errorf("%v of a damaged file", got)
	}
	if err := f.Keep(processorLevels, rates); err == nil || !strings.Contains(err.Error(),
		f.Path()) {
		t.Errorf("kept in a damaged file: %v", err)
	}
	for _, wrong := range []string{`[{"level":"fast","gflops":0},{"level":"slow","gflops":0}]`,
		`[{"level":"slow","gflops":1},{"level":"fast","gflops":2}]`,
		`[{"level":"fast","gflops":2}]`, `[]`} {
		write(t, fs, f, fmt.Sprintf("{%q: {\"rates\": %s}}", name(processorLevels), wrong))
		if got := f.Kept(processorLevels); got != nil {
			t.Errorf("%v of %s", got, wrong)
		}
	}
}

// TestBounded: the oldest of too many processors give way.
func TestBounded(t *testing.T) {
	f := RatesIn(vfs.NewMem(), "kept")
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

// TestText: the text names all processorLevels, where they were kept, and why there is no AMX.
func TestText(t *testing.T) {
	none := errors.New("none here")
	for want, c := range map[string]Choice{
		"fast, 2 GFLOP/s a thread; slow 1 (measured once on this machine)": {Rates: rates,
			Kept: true},
		"fast, 2 GFLOP/s a thread; slow 1 (measured now, and kept); not AMX: none here": {
			Rates: rates, NoAMX: none},
		"fast, 2 GFLOP/s a thread; slow 1 (measured now, not kept: none here)": {Rates: rates,
			NotKept: none},
		"fast; not AMX: none here": {Rates: rates[:1], NoAMX: none},
	} {
		if got := ChoiceText(c); got != "products of bf16 on the CPU: "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
