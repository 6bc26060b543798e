//go:build cuda && cgo && linux

package cuda

import (
	"gdb/compute/backend"
	"gdb/internal/mem"
)

const (
	// stepsPerRead is how many steps are worth one read of their losses, which waits for them.
	stepsPerRead = 16
	// lossesMost is how many losses are kept on the device.
	lossesMost = 64
	// kept is Kept of the kernels: numbers that a loss is made of. It has as many of what was
	// counted before.
	kept = 4
	// partSize is PartSize of the kernels.
	partSize = 4096
	// numberBytes is the size of those numbers.
	numberBytes = 8
)

// lossSlots are the losses on the device that were not read.
type lossSlots struct {
	at      uint64
	pending []pendingLoss
	read    []backend.Loss // before there was no more room
}

// pendingLoss makes a loss of the numbers of a slot: what was kept, and what was counted.
type pendingLoss func(sum, counted *[kept]float64) backend.Loss

// open takes the memory.
func (l *lossSlots) open(d *driver) (err error) {
	l.at, err = d.alloc("losses", lossesMost*2*kept*numberBytes)
	return err
}

// close frees it.
func (l *lossSlots) close(d *driver) error {
	if l.at == 0 {
		return nil
	}
	err := d.free(l.at)
	l.at = 0
	return err
}

// lossNumbers takes memory for the numbers of a loss, and for what was counted for it.
func (g *gpu) lossNumbers() (sum, counted uint64) {
	if len(g.losses.pending) == lossesMost {
		g.readLosses()
	}
	sum = g.take(2 * kept * numberBytes)
	return sum, sum + kept*numberBytes
}

// pend keeps the numbers of a loss in the next slot, unless there are none.
func (g *gpu) pend(numbers uint64, make pendingLoss) {
	g.launch("keep_loss", 1, g.losses.at, numbers, g.number(uint64(len(g.losses.pending))))
	if g.err == nil {
		g.losses.pending = append(g.losses.pending, make)
	}
}

// readLosses reads all losses, and waits for them.
func (g *gpu) readLosses() {
	l := &g.losses
	if len(l.pending) == 0 {
		return
	}
	if g.flush(); g.err != nil { // some may not have been computed
		l.pending = l.pending[:0]
		return
	}
	values := make([]float64, len(l.pending)*2*kept)
	if err := g.driver.read(mem.BytesOf(values), l.at); err != nil {
		g.fail("read losses", err)
		l.pending = l.pending[:0]
		return
	}
	for i, make := range l.pending {
		of := values[i*2*kept:]
		loss := make((*[kept]float64)(of), (*[kept]float64)(of[kept:]))
		l.read = append(l.read, loss)
	}
	l.pending = l.pending[:0]
}

// Losses hands over the losses so far.
func (g *gpu) Losses(dst []backend.Loss) []backend.Loss {
	g.readLosses()
	dst = append(dst, g.losses.read...)
	g.losses.read = g.losses.read[:0]
	return dst
}

// takeParts takes memory for parts of a loss.
func (g *gpu) takeParts(n int) uint64 { return g.take(max(1, n) * kept * numberBytes) }

// partsOf returns the number of parts of a loss of n values.
func partsOf(n int) int { return (n + partSize - 1) / partSize }

// finish adds up parts.
func (g *gpu) finish(to, parts uint64, count int) {
	g.launch("finish", kept*blockThreads, to, parts, count)
}

// losses write their gradient to Out, from outputs, targets and weights in In.
var losses = map[string]deviceKernel{
	"cross-entropy":        crossEntropy,
	"binary-cross-entropy": binaryCrossEntropy,
	"regression":           regression,
}

// weightsOf returns the weights that a loss has; 0 for none.
func (g *gpu) weightsOf(o *backend.Operands) uint64 {
	if o.In[2].Len() == 0 {
		return 0
	}
	return g.at(o.In[2])
}

// crossEntropy is the loss of class labels.
func crossEntropy(g *gpu, o *backend.Operands) {
	logits, labels, weights := o.In[0], o.Labels, g.weightsOf(o)
	rows, cols := logits.Rows, logits.Cols
	for _, l := range labels {
		if int(l) >= cols {
			panic("BUG: a label is not below the number of classes")
		}
	}
	sum, total := g.lossNumbers()
	counts, parts := g.takeParts(partsOf(rows)), g.takeParts(rows)
	at := uint64(0)
	if o.In[1].Rows > 0 {
		at = g.at(o.In[1])
	} else {
		at = send(g, labels)
	}
	g.launch("label_weights", partsOf(rows)*blockThreads, counts, at, weights, rows)
	g.finish(total, counts, partsOf(rows))
	g.launch("cross_entropy", rows*warpThreads, o.Out, parts, logits, at, weights, total, rows,
		cols)
	g.finish(sum, parts, rows)
	g.pend(sum, func(sum, total *[kept]float64) backend.Loss {
		if total[1] == 0 {
			return backend.Loss{}
		}
		right, wrong := uint64(sum[1]), uint64(total[1]-sum[1])
		return backend.Loss{Mean: sum[0] / total[0], Rows: int(total[1]), Hit: right, Wrong: wrong,
			Missed: wrong}
	})
}

// binaryCrossEntropy is the loss of multi-labels.
func binaryCrossEntropy(g *gpu, o *backend.Operands) {
	logits, positive := o.In[0], g.weightsOf(o)
	n, rows := logits.Len(), logits.Rows
	count := partsOf(n)
	sum, _ := g.lossNumbers()
	parts := g.takeParts(count)
	g.launch("binary_cross_entropy", count*blockThreads, o.Out, parts, logits, o.In[1], positive, n,
		logits.Cols, 1/float32(max(1, n)))
	g.finish(sum, parts, count)
	g.pend(sum, func(sum, _ *[kept]float64) backend.Loss {
		return backend.Loss{Mean: sum[0] / float64(max(1, n)), Rows: rows, Hit: uint64(sum[1]),
			Wrong: uint64(sum[2]), Missed: uint64(sum[3])}
	})
}

// regression is the loss of numbers.
func regression(g *gpu, o *backend.Operands) {
	outputs, targets := o.In[0], o.In[1]
	n := outputs.Len()
	count := partsOf(n)
	sum, counted := g.lossNumbers()
	counts, parts := g.takeParts(count), g.takeParts(count)
	g.launch("count_targets", count*blockThreads, counts, targets, n)
	g.finish(counted, counts, count)
	g.launch("regression", count*blockThreads, o.Out, parts, outputs, targets, counted, n,
		int(o.Error))
	g.finish(sum, parts, count)
	g.pend(sum, func(sum, _ *[kept]float64) backend.Loss {
		return backend.Loss{Mean: sum[0] / max(1, sum[3]), Rows: int(sum[3]), Squared: sum[1],
			Absolute: sum[2]}
	})
}
