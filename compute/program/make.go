package program

// Model appends the operations from the features to the logits.
type Model func(b *Builder, features Value) Value

// Options say which program is made of a model. Programs of the same options are the same.
type Options struct {
	// Layers is the number of hops, and Features the width of the features.
	Layers, Features int
	// Train drops values out, and adds the backward pass.
	Train bool
	// InPlace reads the rows that the first layer pulls where they are kept. Where a program reads
	// them otherwise, Program.InPlace is false.
	InPlace bool
	// Cut says that rows which are read in place may be in pieces: see Input.Cut.
	Cut bool
	// InputGrad has the backward pass compute the gradient of the features too, which are then not
	// read in place: see Machine.GradInput.
	InputGrad bool
	// Explain has the program mask edges, and its backward pass compute the gradients of the
	// features and of the mask, but of no parameters: see Machine.GradMask. Train is false then.
	Explain bool
	// KeepFeatures leaves the features as they are, for others who read the batch.
	KeepFeatures bool
	// Order says at which of Program.Places a product comes before its aggregation; where it is
	// shorter than these, they stay as the model has them.
	Order []bool
	// Half has products and sums over lists read bfloat16, and HalfFeatures says that features are:
	// each row begins at an even value, so one of an odd width has a value more behind it. The
	// backend has Halves.
	Half, HalfFeatures bool
	// Sparse has features come as rows of this many words, which package sparse describes, where
	// the model can read such rows: see Program.Sparse. 0 is for dense rows.
	Sparse int
	// FuseAttention computes a sum over lists whose weights are a softmax of scores in one
	// operation, where a backend has a kernel of it: the CPU has not.
	FuseAttention bool
	// Without names passes that are left out, to measure what they give.
	Without Passes
}

// Passes are passes over a program that can be left out.
type Passes struct {
	// Elements is the fusion of element-wise operations, Sums that of sums with what computes their
	// parts, and Dead the removal of what nothing reads.
	Elements, Sums, Dead bool
}

// Make makes a program of a model. Parameters are added to params if they are not there.
func Make(params *Params, m Model, o Options) *Program {
	p := newProgram(params, o.Layers)
	p.features = p.new(value{rows: Nodes(0), cols: o.Features, role: roleFeatures,
		grad: o.Train && o.InputGrad || o.Explain})
	p.explains, p.keepsFeatures = o.Explain, o.KeepFeatures
	b := &Builder{p: p, Train: o.Train}
	p.logits = m(b, p.takeHalf(b, &o))
	p.check()
	p.places = len(p.findPlaces())
	order := o.Order
	if o.Sparse > 0 {
		order = p.sparseOrder(order)
	}
	p.reorder(order)
	if !o.Without.Elements {
		p.fuseElements()
	}
	if o.FuseAttention {
		p.fuseAttention()
	}
	p.inPlace, p.mayCut = o.InPlace && !o.InputGrad && !o.Explain && p.readInPlace(), o.Cut
	p.forward = len(p.ops)
	if !o.Without.Dead {
		p.dropDead()
	}
	if o.Train || o.Explain {
		p.differentiate()
	}
	if !o.Without.Sums {
		p.fuseSums()
	}
	if !o.Without.Dead {
		p.dropDead()
	}
	if o.Half {
		p.halve()
	}
	p.sparse = o.Sparse > 0 && p.takeSparse(o.Sparse)
	p.memory = p.assign()
	p.findLists()
	return p
}

// takeHalf says how features come, and returns their values without what is behind an odd width.
func (p *Program) takeHalf(b *Builder, o *Options) Value {
	f := p.of(p.features)
	if f.half = o.HalfFeatures; !f.half || o.Features%2 == 0 {
		return p.features
	}
	f.cols++
	return b.Columns(p.features, 0, o.Features)
}

// check panics for a model whose logits are not those of the seeds.
func (p *Program) check() {
	v := p.of(p.logits)
	if v.rows != Nodes(p.layers) && v.rows != Items() || v.base != 0 || v.role != roleStep {
		panic("BUG: the logits of a model are not an operation's result for the seeds")
	}
}

// Places returns how many places there are where aggregation and product may change their order.
func (p *Program) Places() int { return p.places }

// InPlace reports whether the first layer reads rows where they are kept.
func (p *Program) InPlace() bool { return p.inPlace }

// Sparse reports whether features are read as sparse rows.
func (p *Program) Sparse() bool { return p.sparse }

// StepFloats returns the scratch of a step on a batch of sizes s, in floats. features is how many
// floats of its features may be overwritten. What lists take for the backward pass is counted by
// ListFloats.
func (p *Program) StepFloats(s *Sizes, features int) int {
	return p.memory.arrange(s, features).floats
}
