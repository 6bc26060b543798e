package inspect_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/inspect"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// goldenGraph is a small graph with a hub, empty lists, and one of every kind of file.
func goldenGraph(attributes bool) layouttest.Graph {
	g := layouttest.Graph{Nodes: 1200, Dim: 3, DType: "f16", Both: true,
		Classes: layouttest.ClassNames(3), Weighted: attributes, Timed: attributes}
	if attributes {
		g.EdgeTypes = []string{"cites", "likes"}
	}
	add := func(src, dst int) {
		i := len(g.Edges)
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(src), Dst: layout.NodeID(dst),
			Type: uint16(i % 2), Weight: float32(i) / 4, Time: int64(1000 + i)})
	}
	for _, e := range [][2]int{{1, 3}, {5, 3}, {9, 3}, {0, 4}, {4, 4}, {2, 900}} {
		add(e[0], e[1])
	}
	for i := range 40 * 1100 { // more than a block has
		add(i%1100, 1000)
	}
	add(7, 1001)
	for v := range g.Nodes {
		g.Features = append(g.Features, float32(v), float32(v)/2, -1)
		g.Labels = append(g.Labels, int32(v%4-1))
		g.IDs = append(g.IDs, fmt.Sprintf("n%d", v))
	}
	return g
}

// TestDumpBlock runs the commands of testdata/dump:
//
//	store NAME [attributes]                      builds goldenGraph
//	flip NAME FILE OFFSET                        changes a bit
//	dump NAME FILE BLOCK [hex] [lines=N]         prints a block, its first N lines
func TestDumpBlock(t *testing.T) {
	fs, stores := vfs.NewMem(), map[string]*layout.Store{}
	datadriven.RunTest(t, "testdata/dump", func(t *testing.T, d *datadriven.TestData) string {
		name := d.CmdArgs[0].Key
		switch d.Cmd {
		case "store":
			stores[name] = layouttest.Build(t, fs, name, goldenGraph(d.HasArg("attributes")))
			var b strings.Builder
			for _, m := range stores[name].Meta().Files {
				fmt.Fprintf(&b, "%s %s %d bytes %08x\n", m.Path, m.Kind, m.Size, m.Checksum)
			}
			return b.String()
		case "flip":
			var off int64
			if _, err := fmt.Sscan(d.CmdArgs[2].Key, &off); err != nil {
				t.Fatal(err)
			}
			layouttest.Flip(t, fs, stores[name].Path(d.CmdArgs[1].Key), off, 1)
			return ""
		}
		var block int64
		if _, err := fmt.Sscan(d.CmdArgs[2].Key, &block); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := inspect.DumpBlock(context.Background(), stores[name], layouttest.Device(t),
			inspect.BlockOf{Path: d.CmdArgs[1].Key, Number: block, Decode: !d.HasArg("hex")}, &out)
		if err != nil {
			return err.Error()
		}
		lines := math.MaxInt
		d.MaybeScanArgs(t, "lines", &lines)
		all := strings.SplitAfter(out.String(), "\n")
		return strings.Join(all[:min(lines, len(all))], "")
	})
}
