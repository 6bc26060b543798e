package rowfile

// NormalizeRows makes reads as float32 divide every row by its sum, as ingest does with --normalize
// row: counts, such as of words, become shares. A row that sums to 0 stays as it is. It must be
// called before the first read.
func (r *Reader) NormalizeRows() {
	decode, dim := r.decode, r.shape.Dim
	if decode == nil {
		panic("BUG: rowfile: rows that are no floats are normalized")
	}
	r.scaled = true
	r.decode = func(out []float32, rows []byte) {
		decode(out, rows)
		for ; len(out) >= dim; out = out[dim:] {
			normalizeRow(out[:dim])
		}
	}
}

// normalizeRow divides values by their sum. It keeps four sums, which need not wait for each other.
func normalizeRow(row []float32) {
	var s [4]float64
	n := len(row) &^ 3
	for i := 0; i < n; i += 4 {
		s[0] += float64(row[i])
		s[1] += float64(row[i+1])
		s[2] += float64(row[i+2])
		s[3] += float64(row[i+3])
	}
	for _, v := range row[n:] {
		s[0] += float64(v)
	}
	sum := s[0] + s[1] + s[2] + s[3]
	if sum == 0 {
		return
	}
	inverse := float32(1 / sum)
	for i := range row {
		row[i] *= inverse
	}
}

// Scale holds the mean of each column, and one over its deviation, 0 for a column that does not
// vary.
type Scale struct {
	Mean    []float32 `json:"mean"`
	Inverse []float32 `json:"inverse"`
}

// ScaleColumns makes reads as float32 scale every row: columns get mean 0 and deviation 1, as far
// as the scale is right. It must be called before the first read that counts.
func (r *Reader) ScaleColumns(s *Scale) {
	decode, dim := r.decode, r.shape.Dim
	if decode == nil || len(s.Mean) != dim || len(s.Inverse) != dim {
		panic("BUG: rowfile: rows are scaled by a scale of other columns")
	}
	r.scaled = true
	r.decode = func(out []float32, rows []byte) {
		decode(out, rows)
		for ; len(out) >= dim; out = out[dim:] {
			for k, v := range out[:dim] {
				out[k] = (v - s.Mean[k]) * s.Inverse[k]
			}
		}
	}
}
