package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkAccuracy trains on small knowledge graphs with the settings of docs/link.md, and holds
// the filtered mean reciprocal rank of the test edges against what these are known to give.
func TestLinkAccuracy(t *testing.T) {
	for _, c := range []struct {
		name, flags string
		least       float64
	}{
		{"umls", "--decoder complex --negatives all --batch 64 --epochs 100 " +
			"--regularizer-weight 0.002 --dropout 0.3 --eval-every 5 --patience 8", 0.93},
		{"nations", "--decoder distmult --negatives all --batch 32 --epochs 60 " +
			"--regularizer-weight 0.01 --dropout 0.3 --eval-every 5 --patience 8", 0.78},
		{"umls", "--decoder transe --negatives 64 --batch 128 --epochs 60 --eval-every 10", 0.6},
	} {
		source := realGraph(t, c.name)
		store := filepath.Join(t.TempDir(), c.name+".gdb")
		if code, _, errs := gdbOutput(t, "ingest", source, "--out", store); code != 0 {
			t.Fatalf("%s: exit code %d: %s", c.name, code, errs)
		}
		args := append([]string{"train", store, "--task", "link", "--json", "--quiet"},
			strings.Fields(c.flags)...)
		code, out, errs := gdbOutput(t, args...)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", c.name, code, errs)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var last struct {
			Event string
			Test  float64
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil ||
			last.Event != "done" {
			t.Fatalf("%s: last line %s: %v", c.name, lines[len(lines)-1], err)
		}
		t.Logf("%s %s: %.4f", c.name, c.flags, last.Test)
		if last.Test < c.least {
			t.Errorf("%s %s: MRR %.4f, want %.4f", c.name, c.flags, last.Test, c.least)
		}
	}
}
