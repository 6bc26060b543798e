//go:build !amd64

package linkrow

const hasAssembly = false

func prefetchRows(*float32, *uint32, int, uintptr) {}

func productGrad(_, _, _, _, _, _, _ *float32, _ float32, _ uint64, _ int) {
	panic("BUG: no assembly")
}

func adagrad(_, _, _ *float32, _, _, _ float32, _ int) { panic("BUG: no assembly") }
