//go:build !amd64

package linkrow

const hasAssembly = false

func prefetchRows(*float32, *uint32, int, uintptr) {}

//lint:parameters a register for each that the loop steps by
func productGrad(_, _, _, _, _, _, _ *float32, _ float32, _ uint64, _ int) {
	panic("BUG: no assembly")
}

func pairScores(*pairsArgs) { panic("BUG: no assembly") }

func pairGrads(*pairsArgs) { panic("BUG: no assembly") }

func pairGradsOwn(*pairsArgs) { panic("BUG: no assembly") }

func adagradSums(*sumsArgs) { panic("BUG: no assembly") }
