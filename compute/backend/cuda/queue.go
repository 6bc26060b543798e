//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"slices"

	"gdb/compute/backend"
	"gdb/internal/cuda"
)

const (
	// groupedLeast is how many operations are worth a graph at least, and groupsMost how many
	// queues are remembered: of each step in page-locked memory three or so, and some that came
	// once.
	groupedLeast, groupsMost = 4, 16
)

// queue is operations that were asked for and not yet given to the device, which flush does with
// all of them. A queue that comes again with the same operands, of the same sizes and at the same
// addresses, is captured as a graph, and from then on launched by one call: Joestar, section 5.3.2.
// What differs from step to step is in the device's memory: see numbers. A graph does what its
// queue says, whatever came between, since all that a queue says is compared.
type queue struct {
	// plain says that nothing is captured, and refused that the driver or cuBLAS does not.
	plain, refused bool
	ops            []operation
	words          []cuda.Argument
	// groups are the queues that came lately, the last one first.
	groups []*group
	counts backend.Launches
}

// group is a queue that came before, and once it came twice its graph.
type group struct {
	ops   []operation
	words []cuda.Argument
	graph *cuda.Graph
}

// operation is a kernel, a product, a copy or a zeroing on the device.
type operation struct {
	name string // of a kernel, or of the operation for errors
	kind operationKind
	// A kernel has this number of blocks, and as arguments count words of the queue, from first on.
	blocks, first, count int
	// A product has factors and a result; a copy goes from one place to another; zeros go to a
	// place.
	product  product
	to, from uint64
	bytes    int
}

// operationKind says what an operation is.
type operationKind uint8

const (
	kernelOperation operationKind = iota
	productOperation
	copyOperation
	zeroOperation
)

// product is c (m,n) = a (m,k) · b (k,n) for each of some heads, or added to c.
type product struct {
	c, a, b        matrix
	m, k, n, heads int
	acc            bool
}

// kernel queues a launch.
func (q *queue) kernel(name string, blocks int, words ...cuda.Argument) {
	q.ops = append(q.ops, operation{name: name, blocks: blocks, first: len(q.words),
		count: len(words)})
	q.words = append(q.words, words...)
}

// drop forgets what is queued.
func (q *queue) drop() { q.ops, q.words = q.ops[:0], q.words[:0] }

// close ends all graphs, once their launches are done.
func (q *queue) close(d *driver) (err error) {
	for _, of := range q.groups {
		err = errors.Join(err, of.close(d))
	}
	q.groups = nil
	return err
}

// close ends a graph, if there is one.
func (of *group) close(d *driver) error {
	if of.graph == nil {
		return nil
	}
	err := d.on(of.graph.Close)
	of.graph = nil
	return err
}

// find returns the group of what is queued, now the first: a new one if there is none, in the place
// of the one that was used longest ago. seen says whether it was there.
func (q *queue) find(d *driver) (of *group, seen bool, err error) {
	i := slices.IndexFunc(q.groups, func(of *group) bool {
		return slices.Equal(of.ops, q.ops) && slices.Equal(of.words, q.words)
	})
	if seen = i >= 0; !seen {
		if len(q.groups) < groupsMost {
			q.groups = append(q.groups, &group{})
		}
		i = len(q.groups) - 1
		if of = q.groups[i]; of.graph != nil {
			if err = errors.Join(d.sync(), of.close(d)); err != nil {
				return nil, false, err
			}
		}
		of.ops, of.words = append(of.ops[:0], q.ops...), append(of.words[:0], q.words...)
	}
	of = q.groups[i]
	copy(q.groups[1:i+1], q.groups[:i])
	q.groups[0] = of
	return of, seen, nil
}

// flush gives all that is queued to the device. name is the operation that failed.
func (q *queue) flush(d *driver) (name string, err error) {
	defer q.drop()
	if len(q.ops) == 0 {
		return "", nil
	}
	if q.plain || len(q.ops) < groupedLeast {
		return q.launch(d)
	}
	of, seen, err := q.find(d)
	if err != nil {
		return "end a graph", err
	}
	if seen && of.graph == nil {
		if name, err = q.capture(d, of); err != nil {
			return name, err
		}
	}
	if of.graph == nil {
		return q.launch(d)
	}
	q.counts.Operations += uint64(len(q.ops))
	q.counts.Calls++
	q.counts.Graphs++
	return "launch a step", d.measured(func() error { return of.graph.Launch(d.stream) })
}

// capture makes the graph of what is queued. A driver or a cuBLAS that cannot do so is no error:
// operations are given to it one by one from now on.
func (q *queue) capture(d *driver, of *group) (name string, err error) {
	err = d.operate(func() (err error) {
		of.graph, err = d.stream.Capture(func() (err error) {
			name, err = q.each(d)
			return err
		})
		return err
	})
	if err != nil {
		of.graph = nil
	}
	if cuda.CaptureRefused(err) {
		q.plain, q.refused = true, true
		return "", nil
	}
	if name == "" {
		name = "capture a step"
	}
	return name, err
}

// launch gives all that is queued to the device one by one.
func (q *queue) launch(d *driver) (name string, err error) {
	q.counts.Operations += uint64(len(q.ops))
	q.counts.Calls += uint64(len(q.ops))
	err = d.measured(func() (err error) {
		name, err = q.each(d)
		return err
	})
	if name == "" {
		name = "order operations behind copies"
	}
	return name, err
}

// each gives the operations to the driver, until one fails: name says which.
func (q *queue) each(d *driver) (name string, err error) {
	for i := range q.ops {
		o := &q.ops[i]
		switch o.kind {
		case kernelOperation:
			err = d.launch(o.name, o.blocks, q.words[o.first:o.first+o.count])
		case productOperation:
			err = d.product(&o.product)
		case copyOperation:
			err = d.stream.CopyOnDevice(cuda.DevicePtr(o.to), cuda.DevicePtr(o.from),
				int64(o.bytes))
		case zeroOperation:
			err = d.stream.Zero(cuda.DevicePtr(o.to), int64(o.bytes))
		}
		if err != nil {
			return o.name, err
		}
	}
	return "", nil
}

// flush gives all that is queued to the device, unless the step failed already.
func (g *gpu) flush() {
	if g.err != nil {
		g.queue.drop()
		return
	}
	g.fail("copy to the device", g.numbers.send(&g.driver))
	if name, err := g.queue.flush(&g.driver); err != nil {
		g.fail(name, err)
	}
}

// Group has steps be captured, where that is not refused.
func (g *gpu) Group(on bool) { g.queue.plain = !on || g.queue.refused }

// settle is flush at the end of a step: an error is one that the step did not tell of.
func (g *gpu) settle() error {
	told := g.err
	if g.flush(); told == nil {
		return g.err
	}
	return nil
}

// Launches counts what the device was given.
func (g *gpu) Launches() backend.Launches {
	l := g.queue.counts
	busy, err := g.driver.busy()
	g.fail("ask how long the device worked", err)
	l.Busy = busy.Seconds()
	return l
}
