package catalog

import (
	"strings"
	"testing"

	"gdb/kv"
)

// TestImpossibleMetadata: what no store can have is refused, whatever its checksum.
func TestImpossibleMetadata(t *testing.T) {
	if err := testMeta().Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(m *kv.Meta){
		"4294967297 nodes":         func(m *kv.Meta) { m.Nodes = 1<<32 + 1 },
		"more than can be stored":  func(m *kv.Meta) { m.Edges = 1 << 63 },
		"types of edges":           func(m *kv.Meta) { m.EdgeTypes = make([]string, 1<<16+1) },
		"34 and 0 buckets":         func(m *kv.Meta) { m.Stats.InHist = make([]uint64, 34) },
		"2 and 34 buckets":         func(m *kv.Meta) { m.Stats.OutHist = make([]uint64, 34) },
		"without in":               func(m *kv.Meta) { m.Directions = nil },
		"blocks of 4097":           func(m *kv.Meta) { m.BlockBytes++ },
		"blocks of 2048":           func(m *kv.Meta) { m.BlockBytes /= 2 },
		`split "" of 3`:            func(m *kv.Meta) { m.Splits[0].Name = "" },
		"of 1001 of 1000 nodes":    func(m *kv.Meta) { m.Splits[0].Count = 1001 },
		`ids of kind "odd"`:        func(m *kv.Meta) { m.IDs.Kind = "odd" },
		`direction "up"`:           func(m *kv.Meta) { m.Directions[1] = "up" },
		`file "../x" is not`:       func(m *kv.Meta) { m.Files[0].Path = "../x" },
		`file "/etc/x" is not`:     func(m *kv.Meta) { m.Files[0].Path = "/etc/x" },
		`file "a//b" is not`:       func(m *kv.Meta) { m.Files[0].Path = "a//b" },
		`file "." is not`:          func(m *kv.Meta) { m.Files[0].Path = "." },
		"of level 1 in a manifest": func(m *kv.Meta) { m.Files[0].Level = 1 },
		"of -1 bytes":              func(m *kv.Meta) { m.Files[0].Size = -1 },
		"listed before: true":      func(m *kv.Meta) { m.Files = append(m.Files, m.Files[0]) },
		"partition 0 has nodes":    func(m *kv.Meta) { m.Partitions[0].Nodes++ },
		"partition 1 has nodes": func(m *kv.Meta) {
			m.Partitions = []kv.Partition{{Nodes: 600}, {First: 599, Nodes: 400}}
		},
		`of 7 "f64"`:                func(m *kv.Meta) { m.Features[0].DType = "f64" },
		`of 0 "f16"`:                func(m *kv.Meta) { m.Features[0].Dim = 0 },
		"0 bytes in pages":          func(m *kv.Meta) { m.Features[0].RowBytes = 0 },
		"pages of 0":                func(m *kv.Meta) { m.Features[0].PageBytes = 0 },
		"sums of 0":                 func(m *kv.Meta) { m.Features[0].SumBytes = 0 },
		`file "../f.rows" is not`:   func(m *kv.Meta) { m.Features[0].Path = "../f.rows" },
		`labels of kind "odd"`:      func(m *kv.Meta) { m.Labels.Kind = "odd" },
		`kind "multi" in rows of`:   func(m *kv.Meta) { m.Labels.Kind = "multi" },
		"1001 of 1000 nodes have":   func(m *kv.Meta) { m.Labels.Labeled = 1001 },
		"4 classes are counted, 3 ": func(m *kv.Meta) { m.Labels.ClassCounts = make([]uint64, 4) },
	} {
		m := testMeta()
		change(m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
