// Package history keeps the hidden states that steps computed last, of each node and each layer but
// the last: the historical embeddings of Joestar (003, section 5.2.2). Steps read those of
// neighbors outside the part of the graph in memory, and write those of the nodes in memory that
// they compute.
//
// A state that was never written, or is older than Most epochs, is missing: lists of the next layer
// leave its node out.
package history

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/embedding"
	"gdb/train/runs"
)

// Most is how many epochs a hidden state is used after the one in which it was computed: weights
// have changed too much then.
const Most = 10

// Config says which states there are.
type Config struct {
	Nodes uint64
	// Widths holds the number of values of each hidden layer, at least one.
	Widths []int
	// Summed says that the first layer reads no lists, since rows have sums: see model.Precomputed.
	Summed bool
	// Threads is how many goroutines copy rows.
	Threads int
}

// table describes the table of states. A row has the states of a node, layer by layer, and then for
// each layer one more than the epoch in which it was written; 0 for never.
func (c *Config) table() *embedding.Config {
	t := &embedding.Config{Nodes: c.Nodes, Threads: c.Threads}
	for _, w := range c.Widths {
		t.Dim += w + 1
	}
	return t
}

// Bytes returns the memory of all states: 4 bytes for each value, and 4 for each node and layer.
func (c *Config) Bytes() int64 { return c.table().Bytes() }

// CheckpointBytes returns what they take in a checkpoint.
func (c *Config) CheckpointBytes() int64 { return c.table().CheckpointBytes() }

// History has the hidden states of all nodes. It is read and written in the order of steps alone,
// so that a run is the same each time. It may be used by one goroutine.
type History struct {
	table  *embedding.Table
	widths []int
	cols   int
	ahead  int                        // layers before the one that reads the first hop
	has    func(v sample.NodeID) bool // nil while all nodes are in memory
	held   mem.Account

	states  [][]float32 // of the batch under way, by layer
	missing [][]bool    // by hop
	inside  []float32
	of      program.Halo
	batch   *sample.Batch
	used    runs.Stale
}

// New returns a history without states. The caller closes it.
func New(c Config, budget *mem.Budget) (*History, error) {
	t, err := embedding.New(*c.table(), budget)
	if err != nil {
		return nil, fmt.Errorf("train: hidden states of all nodes: %w", err)
	}
	h := &History{table: t, widths: c.Widths, cols: t.Dim(),
		states: make([][]float32, len(c.Widths)), missing: make([][]bool, len(c.Widths)+1),
		held: mem.NewAccount(budget, "hidden states of a batch")}
	if c.Summed {
		h.ahead = 1
	}
	return h, nil
}

// InMemory says from now on which nodes are in memory.
func (h *History) InMemory(has func(v sample.NodeID) bool) { h.has = has }

// Write writes the states to a directory of a checkpoint after some steps.
func (h *History) Write(r runs.Dir, dir string, steps int) error {
	return h.table.Write(r, dir, steps, false)
}

// Restore reads what Write wrote.
func (h *History) Restore(r runs.Dir, checkpoint string, steps int) error {
	return h.table.Restore(r, checkpoint, steps, false)
}

// Used says how old the states were that the last batch read.
func (h *History) Used() runs.Stale { return h.used }

// Close frees the memory.
func (h *History) Close() error {
	h.held.Release()
	return h.table.Close()
}

// Outside says whether a node is not in memory.
func (h *History) Outside(v sample.NodeID) bool { return h.has != nil && !h.has(v) }

// Forget forgets all states.
func (h *History) Forget() { clear(h.table.Rows()) }

// Row returns the states of a node, and the epochs in which they were written.
func (h *History) Row(v sample.NodeID) (states, written []float32) {
	row := h.table.Rows()[int(v)*h.cols:][:h.cols]
	return row[:h.cols-len(h.widths)], row[h.cols-len(h.widths):]
}

// Layers returns how many layers have hidden states.
func (h *History) Layers() int { return len(h.widths) }

// first returns where the states of a layer begin in a row.
func (h *History) first(layer int) (n int) {
	for _, w := range h.widths[:layer] {
		n += w
	}
	return n
}

// computed returns the nodes of the batch under way for which a layer computes states, and 0 for
// those that are outside memory.
func (h *History) computed(layer int) (nodes []sample.NodeID, inside []float32) {
	d := &h.batch.Dense
	first := d.NodeIDOffsets[layer+1-h.ahead]
	return d.NodeIDs[first:], h.inside[first:]
}

// Halo returns what is known of the nodes of a batch outside memory, valid until the next call. Its
// Computed writes what is computed of the others.
func (h *History) Halo(be backend.Backend, b *sample.Batch) (*program.Halo, error) {
	d := &b.Dense
	h.batch, h.used = b, runs.Stale{}
	h.inside = mem.Resized(h.inside, len(d.NodeIDs))
	h.of = program.Halo{Inside: h.inside, States: h.of.States[:0], Missing: h.of.Missing[:0],
		Computed: func(layer int, x backend.Tensor) { h.keep(be, layer, x) }}
	first := int(d.NodeIDOffsets[min(1-h.ahead, d.Layers())]) // node that may have states
	for i, v := range d.NodeIDs[first:] {
		h.inside[first+i] = 1
		if h.Outside(v) {
			h.inside[first+i] = 0
		}
	}
	for hop := range d.Layers() {
		layer := hop - 1 + h.ahead // whose states the hop has
		if layer < 0 {             // or features, which all nodes have
			h.of.Missing = append(h.of.Missing, nil)
			continue
		}
		nodes, inside := h.computed(layer)
		missing := mem.Resized(h.missing[hop], len(nodes))
		for i := range nodes {
			missing[i] = inside[i] == 0
		}
		states := mem.Resized(h.states[layer], len(nodes)*h.widths[layer])
		h.look(nodes, states, missing, layer)
		h.missing[hop], h.states[layer] = missing, states
		h.of.States, h.of.Missing = append(h.of.States, states), append(h.of.Missing, missing)
	}
	return &h.of, h.held.AtLeast(h.bytes())
}

// look reads the states after a layer of those of some nodes that are missing. They are no longer.
func (h *History) look(nodes []sample.NodeID, states []float32, missing []bool, layer int) {
	first, w := h.first(layer), h.widths[layer]
	for i, v := range nodes {
		to := states[i*w : (i+1)*w]
		if !missing[i] {
			clear(to)
			continue
		}
		row, written := h.Row(v)
		age := h.batch.Epoch + 1 - uint64(written[layer])
		if written[layer] == 0 || age > Most {
			clear(to)
			h.used.Missing++
			continue
		}
		missing[i] = false
		copy(to, row[first:])
		h.used.States++
		h.used.Sum, h.used.Most = h.used.Sum+age, max(h.used.Most, age)
	}
}

// keep writes the states that a layer computed of nodes in memory.
func (h *History) keep(be backend.Backend, layer int, x backend.Tensor) {
	from := mem.Resized(h.states[layer], x.Len())
	h.states[layer] = from
	be.Read(from, x)
	first, w := h.first(layer), h.widths[layer]
	nodes, inside := h.computed(layer)
	for i, v := range nodes {
		if inside[i] == 0 {
			continue
		}
		states, written := h.Row(v)
		copy(states[first:first+w], from[i*w:])
		written[layer] = float32(h.batch.Epoch + 1)
	}
}

// bytes returns the memory of what is known of a batch.
func (h *History) bytes() (n int64) {
	n = 4 * int64(cap(h.inside))
	for _, states := range h.states {
		n += 4 * int64(cap(states))
	}
	for _, missing := range h.missing {
		n += int64(cap(missing))
	}
	return n
}
