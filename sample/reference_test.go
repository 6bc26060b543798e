package sample

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gdb/internal/rng"
)

// reference samples as the documentation says, plainly: node by node, with maps, growing the
// arrays at the front as in the paper's Algorithm 1. edges has what lists are chosen by.
func reference(list func(NodeID) []NodeID, edges edgeColumns, c Config,
	epoch, batch uint64, seeds []NodeID) Dense {
	d := Dense{NodeIDs: slices.Clone(seeds)}
	d.NodeIDOffsets = []uint32{0, uint32(len(seeds))}
	delta, held := seeds, map[NodeID]bool{}
	for _, v := range seeds {
		held[v] = true
	}
	for h := range c.hops() {
		key := rng.Key(c.Seed, epoch, batch, uint64(h))
		var nbrs []NodeID
		var drawn []float32
		var offsets []uint32
		var times map[NodeID]float64
		if len(c.LayerSize) > 0 {
			times = referenceLayer(key, delta, list, weighing(c, list, edges), c.LayerSize[h])
		}
		for _, v := range delta {
			offsets = append(offsets, uint32(len(nbrs)))
			if len(c.LayerSize) > 0 {
				w := weighing(c, list, edges)(v)
				for p, u := range list(v) {
					if times[u] > 0 {
						nbrs = append(nbrs, u)
						drawn = append(drawn, float32(times[u]*float64(w[p])))
					}
				}
				continue
			}
			fanout := c.Fanout[h]
			switch c.Draw {
			case DrawWeighted:
				l, w := list(v), edges.weights(v)
				for _, p := range referenceWeighted(key, v, w, fanout) {
					nbrs, drawn = append(nbrs, l[p]), append(drawn, w[p])
				}
				continue
			case DrawLatest:
				for _, p := range referenceLatest(edges.times(v), fanout) {
					nbrs = append(nbrs, list(v)[p])
				}
				continue
			}
			for _, p := range referencePositions(key, v, len(list(v)), fanout) {
				nbrs = append(nbrs, list(v)[p])
			}
		}
		d.Weights = append(drawn, d.Weights...)
		for i := range d.NbrOffsets {
			d.NbrOffsets[i] += uint32(len(nbrs))
		}
		d.NbrOffsets = append(offsets, d.NbrOffsets...)
		d.Nbrs = append(slices.Clone(nbrs), d.Nbrs...)
		delta = nil
		for _, v := range nbrs {
			if !held[v] {
				held[v] = true
				delta = append(delta, v)
			}
		}
		for i := range d.NodeIDOffsets {
			d.NodeIDOffsets[i] += uint32(len(delta))
		}
		d.NodeIDOffsets = append([]uint32{0}, d.NodeIDOffsets...)
		d.NodeIDs = append(slices.Clone(delta), d.NodeIDs...)
	}
	d.NbrOffsets = append(d.NbrOffsets, uint32(len(d.Nbrs)))
	index := map[NodeID]uint32{}
	for i, v := range d.NodeIDs {
		index[v] = uint32(i)
	}
	for _, v := range d.Nbrs {
		d.ReprMap = append(d.ReprMap, index[v])
	}
	return d
}

// edgeColumns are what runs parallel to lists.
type edgeColumns struct {
	weights func(NodeID) []float32
	times   func(NodeID) []int64
}

// referencePositions is Floyd's algorithm over 32-bit draws, low half first.
func referencePositions(key uint64, v NodeID, degree, fanout int) []uint32 {
	var out []uint32
	if fanout == All || degree <= fanout {
		for p := range degree {
			out = append(out, uint32(p))
		}
		return out
	}
	stream := rng.NewStream(rng.Sub(key, uint64(v)))
	var halves []uint32
	below := func(n uint32) uint32 {
		for {
			if len(halves) == 0 {
				x := stream.Uint64()
				halves = []uint32{uint32(x), uint32(x >> 32)}
			}
			product := uint64(halves[0]) * uint64(n)
			halves = halves[1:]
			if uint64(uint32(product)) >= (math.MaxUint32+1)%uint64(n) {
				return uint32(product >> 32)
			}
		}
	}
	for limit := degree - fanout + 1; limit <= degree; limit++ {
		p := below(uint32(limit))
		if slices.Contains(out, p) {
			p = uint32(limit - 1)
		}
		out = append(out, p)
	}
	return out
}

// referenceWeighted gives every entry its key, and sorts.
func referenceWeighted(key uint64, v NodeID, weights []float32, fanout int) []int {
	var out []int
	keys := make([]float64, len(weights))
	for p, w := range weights {
		if w > 0 {
			u := rng.Unit(rng.Sub(rng.Sub(key, uint64(v)), uint64(p)))
			keys[p] = -math.Log(1-u) / float64(w)
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	if fanout != All {
		out = out[:min(fanout, len(out))]
	}
	slices.Sort(out)
	return out
}

// referenceLatest sorts the entries by their times, of equal ones the later position first.
func referenceLatest(times []int64, fanout int) []int {
	var out []int
	for p := range times {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(b, a))
	})
	if fanout != All {
		out = out[:min(fanout, len(out))]
	}
	slices.Sort(out)
	return out
}

// weighing are the weights of lists as layers count them.
func weighing(c Config, list func(NodeID) []NodeID,
	edges edgeColumns) func(NodeID) []float32 {
	if c.EdgeWeights {
		return edges.weights
	}
	return func(v NodeID) []float32 { return slices.Repeat([]float32{1}, len(list(v))) }
}

// referenceLayer is how many times what the nodes drawn for a frontier have counts: 1/p.
func referenceLayer(key uint64, front []NodeID, list func(NodeID) []NodeID,
	weights func(NodeID) []float32, size int) map[NodeID]float64 {
	times := map[NodeID]float64{}
	for u, p := range referenceProbabilities(front, list, weights, size) {
		if rng.Unit(rng.Sub(key, uint64(u))) < p {
			times[u] = 1 / p
		}
	}
	return times
}

// referenceProbabilities sorts the candidates by mass: those of the largest that would have more
// than 1 have 1, and the others their share of what is left.
func referenceProbabilities(front []NodeID, list func(NodeID) []NodeID,
	weights func(NodeID) []float32, size int) map[NodeID]float64 {
	mass, met := map[NodeID]float64{}, []NodeID(nil)
	for _, v := range front {
		all, sum := weights(v), 0.0
		for _, w := range all {
			sum += float64(w)
		}
		for i, u := range list(v) {
			w := float64(all[i])
			if w == 0 {
				continue
			}
			if _, ok := mass[u]; !ok {
				met = append(met, u)
			}
			x := 1 / sum * w
			mass[u] += x * x
		}
	}
	p, largest := map[NodeID]float64{}, slices.Clone(met)
	slices.SortStableFunc(largest, func(u, v NodeID) int { return cmp.Compare(mass[v], mass[u]) })
	for _, u := range met {
		p[u] = 1
	}
	if len(met) <= size {
		return p
	}
	rest := make([]float64, len(met)+1) // of the masses from one on
	for i, u := range slices.Backward(largest) {
		rest[i] = rest[i+1] + mass[u]
	}
	ones := 0
	for float64(size-ones)*mass[largest[ones]] >= rest[ones] {
		ones++
	}
	certain, left := map[NodeID]bool{}, 0.0
	for _, u := range largest[:ones] {
		certain[u] = true
	}
	for _, u := range met { // summed up in the order in which they are met
		if !certain[u] {
			left += mass[u]
		}
	}
	for _, u := range largest[ones:] {
		p[u] = float64(size-ones) / left * mass[u]
	}
	return p
}

// verifyDense checks what the type promises, without reference to any sampler.
func verifyDense(d *Dense, fanout []int, list func(NodeID) []NodeID) error {
	k := len(fanout)
	if len(d.NodeIDOffsets) != k+2 || d.NodeIDOffsets[0] != 0 ||
		int(d.NodeIDOffsets[k+1]) != len(d.NodeIDs) || d.Layers() != k {
		return fmt.Errorf("node id offsets %v, %d hops, %d nodes", d.NodeIDOffsets, k,
			len(d.NodeIDs))
	}
	if !slices.IsSorted(d.NodeIDOffsets) || !slices.IsSorted(d.NbrOffsets) {
		return fmt.Errorf("offsets fall: %v, %v", d.NodeIDOffsets, d.NbrOffsets)
	}
	once := map[NodeID]bool{}
	for _, v := range d.NodeIDs {
		if once[v] {
			return fmt.Errorf("node %d stands twice", v)
		}
		once[v] = true
	}
	outer := int(d.NodeIDOffsets[1])
	if len(d.NbrOffsets) != len(d.NodeIDs)-outer+1 || len(d.ReprMap) != len(d.Nbrs) ||
		int(d.NbrOffsets[len(d.NbrOffsets)-1]) != len(d.Nbrs) {
		return fmt.Errorf("%d neighbor offsets, %d neighbors, %d in the map", len(d.NbrOffsets),
			len(d.Nbrs), len(d.ReprMap))
	}
	for i, r := range d.ReprMap {
		if d.NodeIDs[r] != d.Nbrs[i] {
			return fmt.Errorf("neighbor %d is %d, the map leads to %d", i, d.Nbrs[i], d.NodeIDs[r])
		}
	}
	delta := 1
	for i, v := range d.NodeIDs[outer:] {
		for outer+i >= int(d.NodeIDOffsets[delta+1]) {
			delta++
		}
		first := d.NodeIDOffsets[delta-1]
		if err := verifyChoice(list(v), d.Nbrs[d.NbrOffsets[i]:d.NbrOffsets[i+1]],
			fanout[k-delta]); err != nil {
			return fmt.Errorf("node %d: %w", v, err)
		}
		for _, r := range d.ReprMap[d.NbrOffsets[i]:d.NbrOffsets[i+1]] {
			if r < first {
				return fmt.Errorf("node %d of delta %d has a neighbor beyond the next", v, delta)
			}
		}
	}
	return verifyLayers(d)
}

// verifyLayers checks the views of all layers.
func verifyLayers(d *Dense) error {
	for l := range d.Layers() {
		v := d.LayerView(l, nil, nil)
		if v.Base != d.NodeIDOffsets[l] || v.Base+v.In != uint32(len(d.NodeIDs)) ||
			v.Base+v.Skip != d.NodeIDOffsets[l+1] || v.Skip+v.Out != v.In ||
			len(v.Off) != int(v.Out)+1 || len(v.Idx) != int(v.Off[v.Out]) {
			return fmt.Errorf("layer %d: %+v", l, v)
		}
		row := v.Base + v.Skip - d.NodeIDOffsets[1]
		for i := range v.Out {
			nbrs := d.Nbrs[d.NbrOffsets[row+i]:d.NbrOffsets[row+i+1]]
			for j, x := range v.Idx[v.Off[i]:v.Off[i+1]] {
				if x >= v.In || d.NodeIDs[v.Base+x] != nbrs[j] {
					return fmt.Errorf("layer %d: neighbor %d of output %d is wrong", l, j, i)
				}
			}
		}
	}
	return nil
}

// verifyChoice checks that got was drawn from list without replacement, as many as there should
// be.
func verifyChoice(list, got []NodeID, fanout int) error {
	if fanout == All || len(list) <= fanout {
		if !slices.Equal(list, got) {
			return fmt.Errorf("neighbors %v, the list is %v", got, list)
		}
		return nil
	}
	left := map[NodeID]int{}
	for _, v := range list {
		left[v]++
	}
	for _, v := range got {
		if left[v]--; left[v] < 0 {
			return fmt.Errorf("neighbor %d more often than in the list", v)
		}
	}
	if len(got) != fanout {
		return fmt.Errorf("%d neighbors, fanout %d", len(got), fanout)
	}
	return nil
}
