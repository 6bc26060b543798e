package main

// rowSet is registers for some columns of a row: whole vectors, and a last one with some lanes.
type rowSet struct {
	*function
	acc  []vec
	last gp // lanes of the last vector, from 1 to 4
}

// more returns registers for other values of the same columns.
func (u *rowSet) more() *rowSet {
	return &rowSet{function: u.function, acc: u.vector(len(u.acc)), last: u.last}
}

func (u *rowSet) clearAll() {
	for _, v := range u.acc {
		u.clear(v)
	}
}

// begin clears the values, or reads them at base if the register accumulate is not zero.
func (u *rowSet) begin(base, accumulate gp) {
	begun := u.label()
	u.clearAll()
	u.op("CBZ %s, %s", accumulate, begun)
	u.loadAll(base)
	u.mark(begun)
}

// read reads vector i of the row at base into v, with zeros behind the last lane.
func (u *rowSet) read(i int, v vec, base gp) {
	if i == len(u.acc)-1 {
		u.loadLanes(v, base, i*vectorBytes, u.last)
	} else {
		u.loadVector(v, base, i*vectorBytes)
	}
}

// each calls fn with each vector of the row at base.
func (u *rowSet) each(base gp, fn func(i int, v vec)) {
	for i := range u.acc {
		u.scope(func() {
			v := u.vec()
			u.read(i, v, base)
			fn(i, v)
		})
	}
}

func (u *rowSet) loadAll(base gp) {
	for i, v := range u.acc {
		u.read(i, v, base)
	}
}

func (u *rowSet) store(base gp) {
	for i, v := range u.acc {
		if i == len(u.acc)-1 {
			u.storeLanes(v, base, i*vectorBytes, u.last)
		} else {
			u.storeVector(v, base, i*vectorBytes)
		}
	}
}

// loadLanes reads as many lanes as a register says, from 1 to 4, and zeros the others. What takes
// fewer than four stands behind the function's end.
func (f *function) loadLanes(v vec, base gp, offset int, lanes gp) {
	f.byLanes(offset, base, lanes, laneAccess{
		whole: func() { f.loadVector(v, base, offset) },
		two:   func() { f.op("FMOVD %d(%s), %s", offset, base, v.scalar()) },
		third: func() { f.op("VLD1 (%s), %s.S[2]", scratch, v) },
		one:   func() { f.op("FMOVS %d(%s), %s", offset, base, v.scalar()) }})
}

// storeLanes writes as many lanes.
func (f *function) storeLanes(v vec, base gp, offset int, lanes gp) {
	f.byLanes(offset, base, lanes, laneAccess{
		whole: func() { f.storeVector(v, base, offset) },
		two:   func() { f.op("FMOVD %s, %d(%s)", v.scalar(), offset, base) },
		third: func() { f.op("VST1 %s.S[2], (%s)", v, scratch) },
		one:   func() { f.op("FMOVS %s, %d(%s)", v.scalar(), offset, base) }})
}

// laneAccess reads or writes a vector, its first two lanes, its third, whose address is in scratch,
// or its first.
type laneAccess struct{ whole, two, third, one func() }

// byLanes writes the accesses that a number of lanes takes.
func (f *function) byLanes(offset int, base, lanes gp, access laneAccess) {
	part, one, done := f.label(), f.label(), f.label()
	f.op("TBZ $2, %s, %s", lanes, part)
	access.whole()
	f.mark(done)
	f.late = append(f.late, func() {
		f.mark(part)
		f.op("TBZ $1, %s, %s", lanes, one)
		access.two()
		f.op("TBZ $0, %s, %s", lanes, done)
		f.op("ADD $%d, %s, %s", offset+8, base, scratch)
		access.third()
		f.op("B %s", done)
		f.mark(one)
		access.one()
		f.op("B %s", done)
	})
}
