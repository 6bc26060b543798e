package web

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gdb/internal/bug"
	"gdb/train"
)

// linger is how long a request waits for others that are computed with it. While something is
// computed, requests gather anyway.
const linger = 2 * time.Millisecond

// errClosed is the error of a request that came too late.
var errClosed = errors.New("serve: the server ends")

// batcher puts new nodes of requests together and computes them at once.
type batcher struct {
	compute func(ctx context.Context, nodes []train.UnseenNode) ([]train.Prediction, error)
	asks    chan *ask
	end     chan struct{}
	work    sync.WaitGroup
}

// ask is what one request asks for.
type ask struct {
	ctx     context.Context
	nodes   []train.UnseenNode
	entries int
	out     []train.Prediction
	err     error
	done    chan struct{}
}

func newBatcher(p *train.Predictor) *batcher { return startBatcher(p.PredictUnseen) }

// startBatcher returns a batcher that computes in a goroutine of its own.
func startBatcher(compute func(context.Context, []train.UnseenNode) ([]train.Prediction,
	error)) *batcher {
	b := &batcher{compute: compute, asks: make(chan *ask), end: make(chan struct{})}
	b.work.Go(func() {
		defer bug.Catch()
		b.loop()
	})
	return b
}

// close ends the goroutine. Requests that wait get errClosed.
func (b *batcher) close() {
	close(b.end)
	b.work.Wait()
}

// predict returns what is predicted of new nodes.
func (b *batcher) predict(ctx context.Context, nodes []train.UnseenNode) ([]train.Prediction,
	error) {
	a := &ask{ctx: ctx, nodes: nodes, done: make(chan struct{})}
	for i := range nodes {
		a.entries += len(nodes[i].Neighbors) + len(nodes[i].Unseen)
	}
	select {
	case b.asks <- a:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.end:
		return nil, errClosed
	}
	<-a.done // the request's memory is in use until then
	return a.out, a.err
}

// loop answers requests until the end.
func (b *batcher) loop() {
	var late *ask // came when the batch before was full
	for {
		var batch []*ask
		if late != nil {
			batch, late = append(batch, late), nil
		} else {
			select {
			case a := <-b.asks:
				batch = append(batch, a)
			case <-b.end:
				return
			}
		}
		batch, late = b.gather(batch)
		b.answer(batch)
	}
}

// gather adds requests that come within linger, as long as the batch has room. It returns one that
// had none, or nil.
func (b *batcher) gather(batch []*ask) (full []*ask, late *ask) {
	nodes, entries := len(batch[0].nodes), batch[0].entries
	over := time.NewTimer(linger)
	defer over.Stop()
	for {
		select {
		case a := <-b.asks:
			if nodes+len(a.nodes) > unseenMost || entries+a.entries > unseenEdgeMost {
				return batch, a
			}
			batch = append(batch, a)
			nodes, entries = nodes+len(a.nodes), entries+a.entries
		case <-over.C:
			return batch, nil
		}
	}
}

// answer computes a batch. If that fails, each request is computed alone: one may be wrong that
// the others have nothing to do with.
func (b *batcher) answer(batch []*ask) {
	var all []train.UnseenNode
	batch = slices.DeleteFunc(batch, func(a *ask) bool {
		if a.err = a.ctx.Err(); a.err != nil {
			close(a.done)
		}
		return a.err != nil
	})
	for _, a := range batch {
		first := len(all)
		for _, n := range a.nodes {
			moved := n
			moved.Unseen = make([]int, len(n.Unseen))
			for i, k := range n.Unseen {
				moved.Unseen[i] = first + k
			}
			all = append(all, moved)
		}
	}
	if len(all) == 0 {
		return
	}
	out, err := b.compute(context.Background(), all)
	for _, a := range batch {
		switch {
		case err == nil:
			a.out, out = out[:len(a.nodes):len(a.nodes)], out[len(a.nodes):]
		case len(batch) == 1:
			a.err = err
		default:
			a.out, a.err = b.compute(a.ctx, a.nodes)
		}
		close(a.done)
	}
}
