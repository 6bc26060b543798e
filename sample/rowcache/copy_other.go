//go:build !amd64

package rowcache

func copyOrStream[N ~uint32](out, table []float32, dim int, rows []N, to []uint32, _ int) {
	plain(out, table, dim, rows, to)
}
