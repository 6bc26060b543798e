//go:build !amd64

package listcode

func prefetch([]byte, []uint64) {}

func packedFields(b []byte, places []uint64, width int, out []uint32) {
	packedFieldsPlain(b, places, width, out)
}

func ask(*Gatherer, *batch) {}

func aim(g *Gatherer, k *batch) { aimPlain(g, k) }

func take(g *Gatherer, k *batch, out []uint32) { takePlain(g, k, out) }
