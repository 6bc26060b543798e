//go:build avogen

// Command gen writes the assembly of the packages kernel, bf16, pq and amx. Its argument names the
// family of kernels; see the go:generate lines in kernel.go, bf16.go, pq.go and amx.go.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	families := map[string]func(){"gemm": gemm, "segment": segment, "edge": edge, "score": score,
		"max": maxima, "few": few, "convert": convert, "pairs": pairs, "gather": gather,
		"entry": entry, "weighted": weighted, "elements": elements,
		"codes": codes, "vector": slicesFamily(vectorKernels), "norm": slicesFamily(normKernels),
		"activation": slicesFamily(activationKernels), "link": slicesFamily(linkKernels)}
	tiles := map[string]func(*writer){"blocks": blocks, "transpose": transpose}
	name := os.Args[len(os.Args)-1]
	family, known := families[name]
	var err error
	switch out := name + "_amd64"; {
	case known:
		err = write(out, family)
	case tiles[name] != nil:
		err = writeAMX(out+".s", tiles[name])
	default:
		err = fmt.Errorf("the argument is one of %v or %v", slices.Sorted(maps.Keys(families)),
			slices.Sorted(maps.Keys(tiles)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1) //lint:exit this is a main.go, of the generator
	}
}

// write writes a family of kernels: its assembly, and its declarations in Go.
func write(out string, family func()) error {
	os.Args = []string{"gen", "-out", out + ".s", "-stubs", out + ".go",
		"-pkg", os.Getenv("GOPACKAGE")} // of go generate
	family()
	Generate()
	if err := encodeUnknown(out + ".s"); err != nil {
		return err
	}
	return appendSets(out + ".go")
}

// isa is an instruction set: the vectors that kernels are written for.
type isa struct {
	name  string
	bytes int // of a vector
	wide  bool
}

var (
	avx2   = isa{"AVX2", 32, false}
	avx512 = isa{"AVX512", 64, true}
	isas   = []isa{avx2, avx512}
)

// lanes returns how many floats a vector has.
func (s isa) lanes() int { return s.bytes / 4 }

// most returns the first number, or the second with the wider vectors and twice the registers.
func (s isa) most(narrow, wide int) int {
	if s.wide {
		return wide
	}
	return narrow
}

// vec returns a new register.
func (s isa) vec() reg.VecVirtual {
	if s.wide {
		return ZMM()
	}
	return YMM()
}

// vecs returns n new registers.
func (s isa) vecs(n int) []reg.VecVirtual {
	all := make([]reg.VecVirtual, n)
	for i := range all {
		all[i] = s.vec()
	}
	return all
}

// zero returns a new register of zeros.
func (s isa) zero() reg.VecVirtual {
	v := s.vec()
	s.clear(v)
	return v
}

func (s isa) clear(v reg.VecVirtual) {
	if s.wide {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// broadcast returns a register filled with the float or word at m.
func (s isa) broadcast(m Mem) reg.VecVirtual {
	v := s.vec()
	VBROADCASTSS(m, v)
	return v
}

// constant returns a register filled with the 32 bits of x.
func (s isa) constant(x uint32) reg.VecVirtual {
	r := GP32()
	MOVL(U32(x), r)
	v := s.vec()
	if s.wide {
		VPBROADCASTD(r, v)
		return v
	}
	VMOVD(r, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

// mask stands for the first lanes of a vector: a mask register or, with AVX2, a vector.
type mask struct {
	k reg.Register
	v reg.VecVirtual
}

// lowLanes returns the mask of the first n lanes; n may be anything from 1 to the number of lanes.
func (s isa) lowLanes(n reg.GPVirtual) mask {
	if s.wide {
		ones, k := GP32(), K()
		MOVL(U32(0xffffffff), ones)
		BZHIL(n.As32(), ones, ones)
		KMOVW(ones, k)
		return mask{k: k}
	}
	// A window of eight words over eight ones and eight zeros.
	window, at := GP64(), GP64()
	LEAQ(laneWindow(), window)
	MOVQ(U32(8), at)
	SUBQ(n, at)
	v := s.vec()
	VMOVUPS(Mem{Base: window, Index: at, Scale: 4}, v)
	return mask{v: v}
}

var window *Mem

// laneWindow returns the table that AVX2 masks are cut from.
func laneWindow() Mem {
	if window == nil {
		m := GLOBL("laneWindow", RODATA|NOPTR)
		for i := range 16 {
			word := U32(0)
			if i < 8 {
				word = U32(0xffffffff)
			}
			DATA(4*i, word)
		}
		window = &m
	}
	return *window
}

// load reads a vector; store writes one.
func (s isa) load(m Mem, v reg.VecVirtual)  { VMOVUPS(m, v) }
func (s isa) store(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) }

// loadMasked reads the lanes of a mask and zeros the others; storeMasked writes them. Lanes
// outside are not touched, so that they may lie outside of a slice.
func (s isa) loadMasked(m Mem, k mask, v reg.VecVirtual) {
	if s.wide {
		VMOVUPS_Z(m, k.k, v)
	} else {
		VMASKMOVPS(m, k.v, v)
	}
}

func (s isa) storeMasked(v reg.VecVirtual, k mask, m Mem) {
	if s.wide {
		VMOVUPS(v, k.k, m)
	} else {
		VMASKMOVPS(v, k.v, m)
	}
}

// loadRest reads a vector, or the lanes of a mask if there is one; storeRest writes them.
func (s isa) loadRest(m Mem, rest *mask, v reg.VecVirtual) {
	if rest != nil {
		s.loadMasked(m, *rest, v)
	} else {
		s.load(m, v)
	}
}

func (s isa) storeRest(v reg.VecVirtual, rest *mask, m Mem) {
	if rest != nil {
		s.storeMasked(v, *rest, m)
	} else {
		s.store(v, m)
	}
}

// floatParam returns where a float32 parameter lies; loading one into a vector register by name
// would not assemble.
func floatParam(name string) Mem {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return a.Addr
}

// loadGP loads an integer parameter.
func loadGP(c gotypes.Component) reg.GPVirtual {
	r := GP64()
	Load(c, r)
	return r
}
