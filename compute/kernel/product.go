package kernel

// EdgeProduct writes to out(E) the value of src at each entry's row times that of dst at its list.
func EdgeProduct(p *Pool, out, src, dst []float32, off, idx []uint32) {
	segments := len(off) - 1
	if segments <= 0 {
		return
	}
	dst = dst[:segments]
	first := off[0]
	p.Span(segments, SegmentsPart(off, 1), func(lo, hi int) {
		CheckSegments(off[lo:hi+1], idx, len(src))
		for i := lo; i < hi; i++ {
			for e := off[i]; e < off[i+1]; e++ {
				out[e-first] = src[idx[e]] * dst[i]
			}
		}
	})
}
