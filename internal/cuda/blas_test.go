//go:build cuda && cgo && linux

package cuda_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"gdb/internal/cuda"
)

// newBLAS starts cuBLAS until the test ends.
func newBLAS(t *testing.T, m *machine) *cuda.BLAS {
	t.Helper()
	b, err := m.NewBLAS(m.stream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// value returns an element of the matrix that tests use.
func value(row, column int) float32 { return float32((row*7+column*3)%11)/4 - 1 }

// put copies a column-major matrix to the device, stride values from column to column.
func (m *machine) put(t *testing.T, to cuda.DevicePtr, rows, columns, stride int, transposed bool) {
	t.Helper()
	x := m.floats(0, stride*columns)
	for j := range columns {
		for i := range rows {
			x[j*stride+i] = value(i, j)
			if transposed {
				x[j*stride+i] = value(j, i)
			}
		}
	}
	if err := errors.Join(m.stream.CopyToDevice(to, m.host.Bytes[:4*stride*columns]),
		m.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
}

// operand puts a factor of rows x columns, or its transpose.
func (m *machine) operand(t *testing.T, rows, columns int, transposed bool) cuda.Operand {
	p := m.alloc(t, int64(4*(max(rows, columns)+2)*max(rows, columns)))
	r, c := rows, columns
	if transposed {
		r, c = columns, rows
	}
	m.put(t, p, r, c, r+2, transposed)
	return cuda.Operand{Memory: p, Stride: r + 2, Transposed: transposed}
}

// wantProduct is alpha*a·b + beta*c of the tests' matrices.
func wantProduct(i, j, k int, alpha, beta float32) float32 {
	s := float32(0)
	for p := range k {
		s += value(i, p) * value(p, j)
	}
	return alpha*s + beta*value(i, j)
}

func TestSgemm(t *testing.T) {
	m := start(t)
	b := newBLAS(t, m)
	if v, err := b.Version(); err != nil || v < 110000 {
		t.Errorf("version %d, %v", v, err)
	}
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			for _, beta := range []float32{0, 0.5} {
				testSgemm(t, m, b, ta, tb, beta)
			}
		}
	}
}

func testSgemm(t *testing.T, m *machine, b *cuda.BLAS, ta, tb bool, beta float32) {
	const rows, columns, sums = 5, 7, 9
	x, y := m.operand(t, rows, sums, ta), m.operand(t, sums, columns, tb)
	c := m.operand(t, rows, columns, false)
	if err := errors.Join(b.Sgemm(rows, columns, sums, 2, x, y, beta, c),
		m.stream.CopyToHost(m.host.Bytes[:4*c.Stride*columns], c.Memory),
		m.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	got := m.floats(0, c.Stride*columns)
	for i := range rows {
		for j := range columns {
			want := wantProduct(i, j, sums, 2, beta)
			if g := got[j*c.Stride+i]; g != want {
				t.Fatalf("transposed %v and %v, beta %g: (%d, %d) is %g, want %g", ta, tb, beta, i,
					j, g, want)
			}
		}
	}
}

// TestSgemmBatched multiplies three times one a by columns of b that are apart.
func TestSgemmBatched(t *testing.T) {
	m := start(t)
	b := newBLAS(t, m)
	const rows, columns, sums, count = 4, 6, 5, 3
	x, y := m.operand(t, rows, sums, false), m.operand(t, sums, columns, false)
	c := m.operand(t, rows, columns, false)
	steps := cuda.Steps{A: 0, B: 2 * y.Stride, C: 2 * c.Stride}
	if err := errors.Join(b.SgemmBatched(rows, columns/count, sums, 1, x, y, 0, c, steps, count),
		m.stream.CopyToHost(m.host.Bytes[:4*c.Stride*columns], c.Memory),
		m.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		for j := range columns {
			if g, want := m.floats(0, c.Stride*columns)[j*c.Stride+i],
				wantProduct(i, j, sums, 1, 0); g != want {
				t.Fatalf("(%d, %d) is %g, want %g", i, j, g, want)
			}
		}
	}
}

// TestGemmBF16 multiplies 16 x 16 matrices, whose values bfloat16 has all.
func TestGemmBF16(t *testing.T) {
	m := start(t)
	b := newBLAS(t, m)
	const n = 16
	x, c := m.alloc(t, 2*n*n), m.alloc(t, 4*n*n)
	half := unsafe.Slice((*uint16)(unsafe.Pointer(&m.host.Bytes[0])), n*n)
	for i := range half {
		half[i] = uint16(math.Float32bits(value(i%n, i/n)) >> 16)
	}
	if err := m.stream.CopyToDevice(x, m.host.Bytes[:2*n*n]); err != nil {
		t.Fatal(err)
	}
	for _, resultBF16 := range []bool{false, true} {
		factor := cuda.Operand{Memory: x, Stride: n}
		if err := errors.Join(b.GemmBF16(n, n, n, 1, factor, factor, 0,
			cuda.Operand{Memory: c, Stride: n}, resultBF16),
			m.stream.CopyToHost(m.host.Bytes[1024:1024+4*n*n], c),
			m.stream.Synchronize()); err != nil {
			t.Fatal(err)
		}
		got, halves := m.floats(1024, n*n),
			unsafe.Slice((*uint16)(unsafe.Pointer(&m.host.Bytes[1024])), n*n)
		for i := range n * n {
			v, limit := got[i], 1e-6
			if resultBF16 {
				v, limit = math.Float32frombits(uint32(halves[i])<<16), 1.0/256
			}
			want := float64(wantProduct(i%n, i/n, n, 1, 0))
			if math.Abs(float64(v)-want) > limit*max(1, math.Abs(want)) {
				t.Fatalf("bf16 %v: value %d is %g, want %g", resultBF16, i, v, want)
			}
		}
	}
}

// TestTF32 multiplies 1 + 2^-12 by 1: TF32 has 10 bits behind the point.
func TestTF32(t *testing.T) {
	m := start(t)
	b := newBLAS(t, m)
	const n = 16
	x, y, c := m.alloc(t, 4*n*n), m.alloc(t, 4*n*n), m.alloc(t, 4*n*n)
	v := float32(1 + 1.0/4096)
	w := m.alloc(t, 1<<16)
	if err := errors.Join(m.stream.Fill(x, math.Float32bits(v), n*n),
		m.stream.Fill(y, 0x3f800000, n*n), b.SetWorkspace(w, 1<<16)); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[cuda.Math]float32{cuda.Default: n * v, cuda.Pedantic: n * v,
		cuda.TF32: n} {
		if err := errors.Join(b.SetMath(mode), b.Sgemm(n, n, n, 1,
			cuda.Operand{Memory: x, Stride: n}, cuda.Operand{Memory: y, Stride: n}, 0,
			cuda.Operand{Memory: c, Stride: n}), m.stream.CopyToHost(m.host.Bytes[:4], c),
			m.stream.Synchronize()); err != nil {
			t.Fatal(err)
		}
		// A device need not use its tensor cores for so little.
		got := m.floats(0, 1)[0]
		if got != want && (m.Emulated() || mode != cuda.TF32 || got != n*v) {
			t.Errorf("mode %d: %g, want %g", mode, got, want)
		}
	}
}

func TestBLASFails(t *testing.T) {
	m := start(t)
	b := newBLAS(t, m)
	p := m.alloc(t, 1024)
	x := cuda.Operand{Memory: p, Stride: 4}
	if err := b.Sgemm(5, 4, 4, 1, x, x, 0, x); err == nil || !strings.Contains(err.Error(),
		"cuda: sgemm 5 x 4 x 4: CUBLAS_STATUS_INVALID_VALUE (7)") {
		t.Errorf("columns of 5 that are 4 apart: %v", err)
	}
	m.Set(t, "fail_blas", 1)
	if err := b.Sgemm(4, 4, 4, 1, x, x, 0, x); err == nil {
		t.Error("a product that fails")
	}
	if err := errors.Join(b.Sgemm(4, 4, 4, 1, x, x, 0, cuda.Operand{Memory: p + 512, Stride: 4}),
		m.stream.Synchronize()); err != nil {
		t.Errorf("a product after one that failed: %v", err)
	}
	m.Set(t, "lost_after", 1)
	if _, err := m.Alloc(1); !errors.Is(err, cuda.ErrLost) {
		t.Errorf("a lost device: %v", err)
	}
	if err := b.Sgemm(4, 4, 4, 1, x, x, 0, x); !errors.Is(err, cuda.ErrLost) {
		t.Errorf("a product on a lost device: %v", err)
	}
}
