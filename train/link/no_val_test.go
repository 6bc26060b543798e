package link

import (
	"fmt"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRunWithoutVal: without validation edges the last vectors are the best, and rank the test
// edges at the end.
func TestRunWithoutVal(t *testing.T) {
	fs := vfs.NewMem()
	var train, test strings.Builder
	for e := range circleEntities {
		to := &train
		if e%10 == 3 {
			to = &test
		}
		fmt.Fprintf(to, "e%d\tnext\te%d\n", e, (e+1)%circleEntities)
		fmt.Fprintf(&train, "e%d\tback\te%d\n", (e+1)%circleEntities, e)
	}
	if err := fs.MkdirAll("kg", 0o755); err != nil {
		t.Fatal(err)
	}
	layouttest.WriteFile(t, fs, "kg/train.tsv", []byte(train.String()))
	layouttest.WriteFile(t, fs, "kg/test.tsv", []byte(test.String()))
	opt := ingest.Options{Options: source.Options{Sources: []string{"kg"}, Memory: 128 << 20},
		Out: "kg.gdb"}
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	s, err := layout.Open(t.Context(), fs, "kg.gdb")
	if err != nil {
		t.Fatal(err)
	}
	c := circleConfig("complex")
	c.Epochs = 3
	res := mustRun(t, s, c)
	if res.BestEpoch != 3 || res.Epochs != 3 || res.Best != 0 {
		t.Errorf("after 3 epochs without validation edges: %+v", res)
	}
	if res.Test == nil || res.Test.MRR <= 0 {
		t.Errorf("the test edges are ranked as %+v", res.Test)
	}
}
