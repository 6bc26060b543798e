package main

// sliceKernel is a kernel over slices of float32 that it goes through together, a vector at a time
// and the values that are left one by one.
type sliceKernel struct {
	name, signature, doc string
	write                func(k *pass)
}

// slicesFamily writes kernels over slices.
func slicesFamily(kernels []sliceKernel) func() []*function {
	return func() (all []*function) {
		for _, s := range kernels {
			k := &pass{function: newFunction(s.name+"NEON", s.signature, s.doc),
				base: map[string]gp{}}
			s.write(k)
			all = append(all, k.function)
		}
		return all
	}
}

// pass is a pass over the slices of a kernel.
type pass struct {
	*function
	base map[string]gp // where the next values of each are, by name
}

// begin returns the register that points to the next values of a slice.
func (k *pass) begin(name string) gp {
	if _, known := k.base[name]; !known {
		k.base[name] = k.load(name + "_base")
	}
	return k.base[name]
}

// over writes a loop over the length of the last of some slices.
func (k *pass) over(body func(a at), names ...string) {
	k.loop(k.load(names[len(names)-1]+"_len"), body, names...)
}

// loop runs body over n values of slices, to which it moves the pointers along.
func (k *pass) loop(n gp, body func(a at), names ...string) {
	for _, name := range names {
		k.begin(name)
	}
	left := k.gp()
	whole, rest, one, end := k.label(), k.label(), k.label(), k.label()
	step := func(count int) {
		k.scope(func() { body(at{k: k, single: count == 1}) })
		for _, name := range names {
			k.op("ADD $%d, %s", 4*count, k.base[name])
		}
		k.op("SUBS $%d, %s", count, left)
	}
	k.op("SUBS $%d, %s, %s", lanes, n, left)
	k.op("BLT %s", rest)
	k.mark(whole)
	step(lanes)
	k.op("BGE %s", whole)
	k.mark(rest)
	k.op("ADDS $%d, %s", lanes, left)
	k.op("BEQ %s", end)
	k.mark(one)
	step(1)
	k.op("BNE %s", one)
	k.mark(end)
}

// at is where a step of a loop works: four values, or one in the first lane and zeros in others.
type at struct {
	k      *pass
	single bool
}

// load reads values of a slice.
func (a at) load(slice string) vec {
	v := a.k.vec()
	if a.single {
		a.k.op("FMOVS (%s), %s", a.k.begin(slice), v.scalar())
	} else {
		a.k.loadVector(v, a.k.begin(slice), 0)
	}
	return v
}

// loadAll is load with a single value in all lanes.
func (a at) loadAll(slice string) vec {
	if !a.single {
		return a.load(slice)
	}
	v := a.k.vec()
	a.k.op("VLD1R (%s), [%s.S4]", a.k.begin(slice), v)
	return v
}

func (a at) store(v vec, slice string) {
	if a.single {
		a.k.op("FMOVS %s, (%s)", v.scalar(), a.k.begin(slice))
	} else {
		a.k.storeVector(v, a.k.begin(slice), 0)
	}
}

// minus returns the values of a slice, less those of another.
func (a at) minus(slice, other string) vec {
	v := a.load(slice)
	a.k.sub(v, v, a.load(other))
	return v
}

// kept zeros the lanes of v that are not of the slices.
func (a at) kept(v vec) {
	if a.single {
		a.k.op("FMOVS %s, %s", v.scalar(), v.scalar())
	}
}

// result stores the first lane of v as a result.
func (k *pass) result(name string, v vec) { k.op("FMOVS %s, %s", v.scalar(), k.at(name)) }

// sum stores the sum of the lanes of v as the result.
func (k *pass) sum(v vec) {
	k.foldSum(v)
	k.result("ret", v)
}
