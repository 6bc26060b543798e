package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// vec is the number of a vector register: four lanes of 32 bits.
type vec int

// String returns the register as Go's assembler names it.
func (v vec) String() string { return fmt.Sprintf("V%d", int(v)) }

// scalar names the first lanes of the register, or all of it, as loads and stores do.
func (v vec) scalar() string { return fmt.Sprintf("F%d", int(v)) }

// gp is the number of an integer register.
type gp int

// String returns the register as Go's assembler names it.
func (r gp) String() string { return fmt.Sprintf("R%d", int(r)) }

// lanes and vectorBytes are of a vector.
const (
	lanes       = 4
	vectorBytes = 16
	vectorsMost = 32
)

// scratch is the integer register that is never given out: a few instructions use it.
const scratch gp = 26

// integers are the registers that kernels may use: R18 belongs to the system on macOS, R27 to the
// assembler, and those above to the runtime.
var integers = func() (all []gp) {
	for r := gp(0); r < scratch; r++ {
		if r != 18 {
			all = append(all, r)
		}
	}
	return all
}()

// slot is a place in a function's frame: of a parameter, or of a part of one.
type slot struct {
	offset int
	kind   string
}

// function is a kernel that is being written. Registers are given out in ascending order, and those
// of a scope are free after it.
type function struct {
	name, signature, doc string
	frame                map[string]slot
	frameBytes           int
	text                 bytes.Buffer
	vecs, gps, labels    int
	late                 []func() // write what stands behind the end: seldom reached
}

func newFunction(name, signature, doc string) *function {
	f := &function{name: name, signature: signature, doc: doc, frame: map[string]slot{}}
	f.layOut()
	return f
}

// layOut finds where parameters and results lie.
func (f *function) layOut() {
	parameters, results, _ := strings.Cut(strings.TrimPrefix(f.signature, "func("), ")")
	f.frameBytes = f.place(parameters, 0)
	results = strings.Trim(results, " ()")
	if results == "" {
		return
	}
	if !strings.Contains(results, " ") {
		results = "ret " + results
	}
	f.frameBytes = f.place(results, (f.frameBytes+7)/8*8)
}

// place gives the parameters of a list their offsets, from at on, and returns the end.
func (f *function) place(list string, at int) int {
	var names []string // of one type
	for _, parameter := range strings.Split(list, ", ") {
		name, kind, typed := strings.Cut(parameter, " ")
		if names = append(names, name); !typed {
			continue
		}
		for _, name := range names {
			switch kind {
			case "float32", "uint32":
				f.frame[name] = slot{at, kind}
				at += 4
			case "[]float32":
				at = (at + 7) / 8 * 8
				f.frame[name+"_base"], f.frame[name+"_len"] = slot{at, "word"}, slot{at + 8, "word"}
				at += 24
			default:
				at = (at + 7) / 8 * 8
				f.frame[name] = slot{at, "word"}
				at += 8
			}
		}
		names = nil
	}
	return at
}

// at returns how assembly names a parameter.
func (f *function) at(name string) string {
	s, ok := f.frame[name]
	if !ok {
		panic("BUG: " + f.name + " has no parameter " + name)
	}
	return fmt.Sprintf("%s+%d(FP)", name, s.offset)
}

// op writes an instruction.
func (f *function) op(format string, operands ...any) {
	fmt.Fprintf(&f.text, "\t"+format+"\n", operands...)
}

// label returns a new label, and mark has one stand here.
func (f *function) label() string {
	f.labels++
	return fmt.Sprintf("at%d", f.labels)
}

func (f *function) mark(label string) { fmt.Fprintf(&f.text, "%s:\n", label) }

// scope frees the registers that body takes.
func (f *function) scope(body func()) {
	vecs, gps := f.vecs, f.gps
	body()
	f.vecs, f.gps = vecs, gps
}

// vec and gp return registers that nothing uses.
func (f *function) vec() vec {
	if f.vecs == vectorsMost {
		panic("BUG: " + f.name + " has no more vector registers")
	}
	f.vecs++
	return vec(f.vecs - 1)
}

func (f *function) vector(n int) []vec {
	all := make([]vec, n)
	for i := range all {
		all[i] = f.vec()
	}
	return all
}

func (f *function) gp() gp {
	if f.gps == len(integers) {
		panic("BUG: " + f.name + " has no more integer registers")
	}
	f.gps++
	return integers[f.gps-1]
}

// load returns a register with an integer parameter.
func (f *function) load(name string) gp {
	r := f.gp()
	f.reload(name, r)
	return r
}

// reload reads an integer parameter into r.
func (f *function) reload(name string, r gp) {
	if f.frame[name].kind == "uint32" {
		f.op("MOVWU %s, %s", f.at(name), r)
		return
	}
	f.op("MOVD %s, %s", f.at(name), r)
}

// param returns a vector filled with a parameter of type float32.
func (f *function) param(name string) vec {
	v := f.vec()
	f.op("FMOVS %s, %s", f.at(name), v.scalar())
	f.op("VDUP %s.S[0], %s.S4", v, v)
	return v
}

// constant returns a vector filled with 32 bits, float with a number, and zero with zeros.
func (f *function) constant(bits uint32) vec {
	v := f.vec()
	f.scope(func() {
		r := f.gp()
		f.op("MOVD $0x%x, %s", bits, r)
		f.op("VDUP %s, %s.S4", r, v)
	})
	return v
}

func (f *function) float(x float32) vec { return f.constant(math.Float32bits(x)) }

func (f *function) zero() vec {
	v := f.vec()
	f.clear(v)
	return v
}

func (f *function) clear(v vec) { f.op("VEOR %s.B16, %s.B16, %s.B16", v, v, v) }

func (f *function) move(to, v vec) { f.op("VORR %s.B16, %s.B16, %s.B16", v, v, to) }

// binary, unary and others write instructions that the assembler does not know.
func (f *function) binary(name string, to, a, b vec) { f.op("%s", binary(name, to, a, b)) }
func (f *function) unary(name string, to, a vec)     { f.op("%s", unary(name, to, a)) }

func (f *function) add(to, a, b vec) { f.binary("fadd", to, a, b) }
func (f *function) sub(to, a, b vec) { f.binary("fsub", to, a, b) }
func (f *function) mul(to, a, b vec) { f.binary("fmul", to, a, b) }
func (f *function) div(to, a, b vec) { f.binary("fdiv", to, a, b) }

// addTimes is to += a·b, and lessTimes to -= a·b, each rounded once.
func (f *function) addTimes(to, a, b vec)  { f.op("VFMLA %s.S4, %s.S4, %s.S4", b, a, to) }
func (f *function) lessTimes(to, a, b vec) { f.op("VFMLS %s.S4, %s.S4, %s.S4", b, a, to) }

// addTimesLane is to += a times a lane of b.
func (f *function) addTimesLane(to, a, b vec, lane int) {
	f.op("%s", multiplyLane(to, a, b, lane))
}

// positive has all bits of the lanes in which a is above zero, and greater of those in which it is
// above b; a NaN is not.
func (f *function) positive(a vec) vec {
	to := f.vec()
	f.op("%s", sign("fcmgt", to, a))
	return to
}

func (f *function) greater(a, b vec) vec {
	to := f.vec()
	f.binary("fcmgt", to, a, b)
	return to
}

// and, andNot and xor work on bits.
func (f *function) and(to, a, b vec)    { f.op("VAND %s.B16, %s.B16, %s.B16", b, a, to) }
func (f *function) xor(to, a, b vec)    { f.op("VEOR %s.B16, %s.B16, %s.B16", b, a, to) }
func (f *function) andNot(to, a, b vec) { f.op("%s", andNot(to, a, b)) }

// choose has yes in the lanes of a mask, and no in the others, in the place of the mask.
func (f *function) choose(mask, yes, no vec) vec {
	f.op("VBSL %s.B16, %s.B16, %s.B16", no, yes, mask)
	return mask
}

// foldSum has the sum of all lanes of v in each of them.
func (f *function) foldSum(v vec) {
	f.binary("faddp", v, v, v)
	f.binary("faddp", v, v, v)
}

// loadVector reads a vector offset bytes behind an address, and storeVector writes one.
func (f *function) loadVector(v vec, base gp, offset int) {
	f.op("FMOVQ %d(%s), %s", offset, base, v.scalar())
}

func (f *function) storeVector(v vec, base gp, offset int) {
	f.op("FMOVQ %s, %d(%s)", v.scalar(), offset, base)
}

// write returns the assembly of the function.
func (f *function) write() string {
	f.op("RET")
	for len(f.late) > 0 {
		next := f.late[0]
		f.late = f.late[1:]
		next()
	}
	return fmt.Sprintf("\n// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n%s", f.name,
		strings.TrimPrefix(f.signature, "func"), f.name, f.frameBytes, f.text.String())
}
