package pq

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func random(n int, r *rand.Rand) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// groupsOf are random codes and biases of some groups, with a gap behind each.
func groupsOf(s Shape, count int, r *rand.Rand) Groups {
	g := Groups{Shape: s, Count: count, Stride: s.GroupBytes() + 4*Group + 64}
	g.Bytes = make([]byte, count*g.Stride)
	for i := range g.Bytes {
		g.Bytes[i] = byte(r.Uint32())
	}
	for i := range count {
		for e := range Group {
			bias := float32(r.IntN(1 << 16))
			if e%7 == 3 {
				bias = float32(math.Inf(-1))
			}
			binary.LittleEndian.PutUint32(g.Bytes[i*g.Stride+s.GroupBytes()+4*e:],
				math.Float32bits(bias))
		}
	}
	return g
}

// TestScan compares the versions with the specification, at sums that are as large as they can be
// too. Numbers are such that all of them are exact.
func TestScan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, dim := range []int{1, 7, 8, 24, 128, 200, 512, 1000} {
		s := ShapeOf(dim)
		for _, count := range []int{1, 2, 5} {
			g := groupsOf(s, count, r)
			table := make([]byte, s.Parts*Centers)
			for i := range table {
				table[i] = byte(r.Uint32())
				if count == 2 {
					table[i] = 255
				}
			}
			wantMasks, wantSums := make([]uint32, count), make([]uint16, count*Group)
			refScan(wantMasks, wantSums, g, table, 0.5, 20000)
			for name, fn := range versions() {
				masks, sums := make([]uint32, count), make([]uint16, count*Group)
				fn(masks, sums, g, table, 0.5, 20000)
				if !slices.Equal(sums, wantSums) || !slices.Equal(masks, wantMasks) {
					t.Errorf("%s, %d columns, %d groups: %x %v, want %x %v", name, dim, count,
						masks, sums, wantMasks, wantSums)
				}
			}
			if count == 2 && wantSums[0] != uint16(255*s.Parts) {
				t.Errorf("%d columns: the largest sum is %d", dim, wantSums[0])
			}
		}
	}
}

// TestScanPanics: slices that are too short are a mistake of the program.
func TestScanPanics(t *testing.T) {
	g := groupsOf(ShapeOf(16), 2, rand.New(rand.NewPCG(1, 1)))
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Scan(make([]uint32, 1), make([]uint16, 64), g, make([]byte, 128), 1, 0)
}

// TestCodes: the sum of a table's bytes for a code is, but for rounding, the product of the query
// with the vector that the code stands for.
func TestCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, dim := range []int{1, 5, 16, 128, 700} {
		const n = 200
		s := ShapeOf(dim)
		rows := random(n*dim, r)
		b := Train(s, rows, n, 7)
		g := Groups{Shape: s, Count: 1, Stride: s.GroupBytes() + 4*Group}
		g.Bytes = make([]byte, g.Stride)
		decoded := make([][]float32, Group)
		code := make([]byte, s.CodeBytes())
		for e := range Group {
			decoded[e] = make([]float32, dim)
			b.Encode(code, decoded[e], rows[e*dim:][:dim])
			s.PutGroup(g.Bytes, code, e)
		}
		query := random(dim, r)
		var table Table
		table.Make(b, query, 2)
		masks, sums := make([]uint32, 1), make([]uint16, Group)
		Scan(masks, sums, g, table.Bytes, table.Scale, 0)
		for e, row := range decoded {
			var want float64
			for j, v := range row {
				want += 2 * float64(v) * float64(query[j])
			}
			got := float64(table.Sum + table.Scale*float32(sums[e]))
			if most := float64(table.Scale) * float64(s.Parts) * 0.51; math.Abs(got-want) > most {
				t.Errorf("%d columns, entry %d: %g, want %g within %g", dim, e, got, want, most)
			}
		}
	}
}

// TestTrain: centers that vectors lie around are found, and vectors are coded as the nearest.
func TestTrain(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	const n, dim = 4000, 4
	rows := make([]float32, n*dim)
	for i := range rows {
		rows[i] = float32(10*r.IntN(4)) + 0.01*float32(r.NormFloat64())
	}
	b := Train(ShapeOf(dim), rows, n, 1)
	code, decoded := make([]byte, b.CodeBytes()), make([]float32, dim)
	var distortion float64
	for i := range n {
		row := rows[i*dim:][:dim]
		b.Encode(code, decoded, row)
		for j, v := range decoded {
			distortion += float64(v-row[j]) * float64(v-row[j])
		}
		for p := range 2 {
			k, best := int(code[p/2]>>(p%2*4)&15), math.Inf(1)
			for c := range Centers {
				x, y := float64(row[2*p]-b.center(p, c)[0]), float64(row[2*p+1]-b.center(p, c)[1])
				best = min(best, x*x+y*y)
			}
			x, y := float64(row[2*p]-b.center(p, k)[0]), float64(row[2*p+1]-b.center(p, k)[1])
			if x*x+y*y > best+1e-6 {
				t.Fatalf("row %d, part %d: center %d is %g away, one is %g", i, p, k, x*x+y*y, best)
			}
		}
	}
	// Lloyd's algorithm may leave two of the 16 places to one center. Without centers it is 500.
	if mean := distortion / n; mean > 40 {
		t.Errorf("mean distortion %g", mean)
	}
}

// TestBookOf: values of another number are refused.
func TestBookOf(t *testing.T) {
	s := ShapeOf(10)
	if _, err := NewBook(s, make([]float32, s.Values()-1)); err == nil {
		t.Error("a book of too few values is taken")
	}
	if s.Parts%quad != 0 || ShapeOf(4000).Parts > partsMost {
		t.Errorf("parts: %+v, %+v", s, ShapeOf(4000))
	}
}

func BenchmarkScan(b *testing.B) {
	s := ShapeOf(128)
	g := groupsOf(s, 25, rand.New(rand.NewPCG(1, 1)))
	table := make([]byte, s.Parts*Centers)
	masks, sums := make([]uint32, g.Count), make([]uint16, g.Count*Group)
	for name, fn := range versions() {
		b.Run("version="+name, func(b *testing.B) {
			b.SetBytes(int64(g.Count * s.GroupBytes()))
			for b.Loop() {
				fn(masks, sums, g, table, 1, 1e9)
			}
		})
	}
}
