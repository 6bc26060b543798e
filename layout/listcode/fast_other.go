//go:build !amd64

package listcode

func prefetch(b []byte, places []uint64) {}

func selectOnes(b []byte, at, rank []uint64, reach int) { selectOnesPlain(b, at, rank, reach) }
