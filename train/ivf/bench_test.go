package ivf

import "testing"

// BenchmarkBuild makes an index of 100,000 vectors of 128 columns.
func BenchmarkBuild(b *testing.B) {
	const n, dim = 100_000, 128
	x := planted(n, dim, 300, 1)
	m := newMaker(b, Euclid)
	for b.Loop() {
		b.Log(m.build(b, x, dim))
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "vectors/s")
}
