package superbatch

import (
	"slices"
	"testing"

	"gdb/internal/rng"
	"gdb/sample"

	"pgregory.net/rapid"
)

// TestTurnStacks compares with a slice for each turn: as many rows as there are slots, on any
// stacks, in chunks of any size; and a turn's rows may be pushed on others while they are read.
func TestTurnStacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.SampledFrom([]int{1, 3, 40, 700, 5000}).Draw(t, "slots")
		turns := rapid.SampledFrom([]int{2, 3, 9, 300}).Draw(t, "turns")
		s := newTurnStacks(make([]byte, poolBytes(slots)), slots, turns)
		plain, rows := make([][]uint64, turns), 0
		draw := rng.NewStream(rapid.Uint64().Draw(t, "seed"))
		push := func(turn int) {
			slot, at := uint32(draw.Below(1<<20)), uint32(draw.Below(1<<20))
			s.Push(uint32(turn), uint64(slot)<<32|uint64(at))
			plain[turn] = append(plain[turn], uint64(slot)<<32|uint64(at))
			rows++
		}
		for range 60 {
			turn := int(draw.Below(uint64(turns)))
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				for n := draw.Below(uint64(slots-rows) + 1); n > 0; n-- {
					push(turn)
				}
			case 1:
				n := int(draw.Below(uint64(s.Len(uint32(turn))) + 1))
				for _, got := range s.Pop(uint32(turn), n, nil) {
					list := plain[turn]
					if want := uint32(list[len(list)-1] >> 32); got != want {
						t.Fatalf("popped %d, want %d", got, want)
					}
					plain[turn], rows = list[:len(list)-1], rows-1
				}
			case 2:
				var got []uint64
				for c := s.Chunk(uint32(turn)); len(c) > 0; c = s.Chunk(uint32(turn)) {
					rows -= len(c)
					for _, row := range c {
						got = append(got, row)
						push((turn + 1 + int(draw.Below(uint64(turns-1)))) % turns)
					}
					s.Drop(uint32(turn))
				}
				slices.Sort(got)
				slices.Sort(plain[turn])
				if !slices.Equal(got, plain[turn]) {
					t.Fatalf("turn %d has %v, want %v", turn, got, plain[turn])
				}
				plain[turn] = nil
			}
			for turn, list := range plain {
				if s.Len(uint32(turn)) != len(list) {
					t.Fatalf("turn %d has %d rows of %d", turn, s.Len(uint32(turn)), len(list))
				}
			}
		}
	})
}

// TestManySlots is TestHitsAreBeladys with chunks of many rows.
func TestManySlots(t *testing.T) {
	const nodes, slots = 2500, 1200
	if log := chunkLog(slots, 12); log < 4 {
		t.Fatalf("chunks of %d rows", 1<<log)
	}
	draw := rng.NewStream(9)
	r, err := planRanges(nodes, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	p := newPasses(t, r, slots)
	defer p.close(t)
	for range 3 {
		var batches [][]sample.NodeID
		for range 10 {
			seen := map[sample.NodeID]bool{}
			for range 500 {
				x := draw.Float64()
				seen[sample.NodeID(x*x*nodes)] = true
			}
			var b []sample.NodeID
			for v := range seen {
				b = append(b, v)
			}
			slices.Sort(b)
			batches = append(batches, b)
		}
		plain := &minCache{slots: slots, held: slices.Clone(p.state.Rows())}
		got := p.superbatch(t, batches)
		if want := plain.run(batches); !slices.Equal(got, want) {
			t.Fatalf("hits %v, want %v", got, want)
		}
	}
}
