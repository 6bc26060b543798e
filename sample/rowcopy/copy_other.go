//go:build !amd64

package rowcopy

func copyRows[N ~uint32](out, table []float32, dim int, rows []N, to []uint32, _ int) {
	plain(out, table, dim, rows, to)
}
