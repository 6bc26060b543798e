package superbatch

import (
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"gdb/sample"
)

// preparation is what a test prepares of batches: the place of the last one, until it is dropped.
type preparation struct {
	of             *counts
	index          int64
	taken, current bool
}

// counts counts what batches have.
type counts struct{ held, memory atomic.Int64 }

func (p *preparation) Drop() {
	if p.current {
		p.of.held.Add(-1)
	}
	p.current = false
}

func (p *preparation) Free() bool {
	p.Drop()
	was := p.taken
	if p.taken = false; was {
		p.of.memory.Add(-1)
	}
	return was
}

// prepare prepares a batch, which has no rows yet.
func (c *counts) prepare(b *sample.Batch) error {
	p, ok := b.Prepared.(*preparation)
	if !ok {
		p = &preparation{of: c}
		b.Prepared = p
	}
	if len(b.Dense.NodeIDs) == 0 || len(b.X) > 0 || p.current {
		return fmt.Errorf("%d nodes and %d values, prepared before: %v", len(b.Dense.NodeIDs),
			len(b.X), p.current)
	}
	if !p.taken {
		c.memory.Add(1)
	}
	p.index, p.taken, p.current = int64(b.Epoch*13+b.Index), true, true
	c.held.Add(1)
	return nil
}

// TestBatchesArePrepared: every batch comes prepared, and finished once it has its rows; what was
// prepared is dropped when the batch is released, and freed when nobody makes batches any more.
func TestBatchesArePrepared(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		prepared := &counts{}
		finished := map[int64]bool{}
		c := testConfig(t)
		c.Overlap, c.Ready, c.Prepare = overlap, 1, prepared.prepare
		done := make(chan int64, 39)
		c.Finish = func(b *sample.Batch) error {
			if p := b.Prepared.(*preparation); len(b.X) == len(b.Dense.NodeIDs)*testDim {
				done <- p.index
			}
			return nil
		}
		l := mustOpen(t, c)
		var last *sample.Batch
		for epoch := range uint64(2) {
			e, err := l.Epoch(epoch)
			if err != nil {
				t.Fatal(err)
			}
			for b, err := e.Next(t.Context()); err != io.EOF; b, err = e.Next(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				for len(done) > 0 {
					finished[<-done] = true
				}
				p := b.Prepared.(*preparation)
				if want := int64(epoch*13 + b.Index); p.index != want || !p.current ||
					!finished[want] {
					t.Errorf("batch %d comes with what was prepared of %d, finished %v", want,
						p.index, finished[want])
				}
				if last = b; b.Index < 12 || epoch == 0 {
					b.Release()
				}
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		if held, memory := prepared.held.Load(), prepared.memory.Load(); held != 1 || memory != 1 {
			t.Errorf("%d batches are prepared, %d have memory, while one is held", held, memory)
		}
		if last.Release(); prepared.memory.Load() != 0 {
			t.Error("a batch keeps its memory")
		}
		closeAll(t, l)
	}
}

// TestPreparedIsPlanned: each batch in memory has what is prepared of it.
func TestPreparedIsPlanned(t *testing.T) {
	d := Demand{Batch: sample.BatchSize{Nodes: 100, Inner: 10, Edges: 300}, Dim: 4, Ready: 2}
	before, _ := d.loop()
	d.Prepared = 1000
	if after, _ := d.loop(); after-before != int64(Frames(2))*1000 {
		t.Errorf("%d bytes more are planned", after-before)
	}
}
