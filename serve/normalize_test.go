package serve

import (
	"math"
	"strings"
	"testing"

	"gdb/serve/protocol"
	"gdb/train/setting"
)

// TestFeaturesAreScaled: the first loader has the features of all scaled; auto of another is that.
func TestFeaturesAreScaled(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	k := r.connect(t)
	o := protocol.Open{Split: "train", Fanout: []int{3}, Batch: 50, Seed: 1, World: 1,
		Normalize: setting.NormalizeRow}
	if got := k.open(o).Normalize; got != setting.NormalizeRow {
		t.Fatalf("rows are scaled as %q", got)
	}
	k.start(0, 0)
	b, err := k.next()
	if err != nil {
		t.Fatal(err)
	}
	rows, nodes := b.floats(arrayRows), b.ints(arrayNodes)
	dim := len(rows) / len(nodes)
	for i := range nodes {
		sum := 0.0
		for _, v := range rows[i*dim : (i+1)*dim] {
			sum += float64(v)
		}
		if sum != 0 && math.Abs(sum-1) > 1e-5 {
			t.Fatalf("the row of node %d sums to %v", nodes[i], sum)
		}
	}
	other := r.connect(t)
	o.Normalize, o.Batch = "none", 20
	_, _, err = other.ask(protocol.KindOpen, o, nil)
	if err == nil || !strings.Contains(err.Error(), "scaled as normalize row") {
		t.Fatalf("another way to scale: %v", err)
	}
	o.Normalize = "auto"
	if got := other.open(o).Normalize; got != setting.NormalizeRow {
		t.Fatalf("auto of the second loader is %q", got)
	}
}

// TestOwnClients: clients of their own get all batches of an epoch, whatever others do, though the
// last round has not one for each.
func TestOwnClients(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	o := protocol.Open{Split: "train", Fanout: []int{3}, Batch: 30, Seed: 1, World: 1}
	whole := r.connect(t)
	batches := whole.open(o).Batches // 140 nodes in batches of 30
	whole.start(0, 0)
	o.Own, o.World = "workers", 2
	var clients []*client
	for rank := range 2 {
		k := r.connect(t)
		o.Rank = rank
		k.open(o)
		clients = append(clients, k)
	}
	for _, k := range clients {
		k.start(0, 0)
	}
	for index := range batches {
		k := clients[index%2]
		b, err := k.next()
		if err != nil || b == nil || b.Index != index {
			t.Fatalf("batch %d: %v, %v", index, b, err)
		}
		k.give(b)
	}
	for _, k := range clients {
		if b, err := k.next(); b != nil || err != nil {
			t.Fatalf("after the last batch: %v", err)
		}
	}
}
