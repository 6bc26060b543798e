package link

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
	"gdb/train/setting"
)

// These separate the random keys of orders and of batches from each other and from others.
const (
	orderDomain = 0x6f726465 // "orde"
	batchDomain = 0x62617463 // "batc"
)

// rate returns the learning rate of the epoch.
func (t *trainer) rate() float64 { return t.cfg.LR / math.Pow(2, float64(t.pos.Halvings)) }

// Steps trains on the rest of the current epoch.
func (t *trainer) Steps(ctx context.Context) error {
	before := t.stepper.be.Launches()
	defer func() {
		t.pos.Launches = t.pos.Launches.Add(t.stepper.be.Launches().Sub(before))
	}()
	t.stepper.opt.rate = float32(t.rate())
	for parts := t.source.Parts(t.pos.Epoch); t.pos.Part < parts; t.pos.Part++ {
		if t.source.CheckpointFirst(t.pos.Epoch, t.pos.Part) {
			if err := t.Checkpoint(); err != nil {
				return err
			}
		}
		begun := time.Now()
		p, err := t.source.Load(ctx, t.pos.Epoch, t.pos.Part)
		if err != nil {
			return err
		}
		t.stepper.use(p, t.source.rows())
		if t.pipe != nil {
			t.pipe.use(t.stepper)
		}
		t.pos.Wait += time.Since(begun).Seconds()
		t.pos.Time += time.Since(begun).Seconds()
		if err := t.batches(ctx, p); err != nil {
			return err
		}
		t.pos.Batch = 0
	}
	return nil
}

// batches trains on the rest of a part, in a random order that is a function of the seed, the
// epoch and the part.
func (t *trainer) batches(ctx context.Context, p *triples.Part) error {
	n := len(p.Edges)
	if t.cfg.Negatives == setting.NegativesAll {
		n = t.data.trainIndex.Len()
	}
	order := rng.NewFiller(rng.NewPermutation(uint64(n), rng.Key(orderDomain, t.cfg.Seed,
		t.pos.Epoch, uint64(t.pos.Part))))
	size := t.stepper.batch
	for batches := (n + size - 1) / size; t.batch() < batches; {
		if err := ctx.Err(); err != nil && t.whole() {
			return err
		}
		begun := time.Now()
		if err := t.step(p, order, n); err != nil {
			return fmt.Errorf("epoch %d, batch %d: %w", t.pos.Epoch+1, t.batch()+1, err)
		}
		t.pos.Batch++
		t.pos.Batches++
		if t.batch()%drainEvery == 0 || t.batch() == batches ||
			len(t.stepper.unread) >= t.stepper.be.About().StepsPerRead {
			if err := t.drain(); err != nil {
				return err
			}
		}
		t.pos.Time += time.Since(begun).Seconds()
		t.Stepped(batches)
		if t.whole() && (t.isCounted() || t.IsDue()) {
			if err := t.Checkpoint(); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch returns the number of the next batch of the part.
func (t *trainer) batch() int { return int(t.pos.Batch) }

// whole reports whether the updates of all batches were made, so that the run may stop here.
func (t *trainer) whole() bool { return t.pipe == nil || t.pipe.empty() }

// isCounted reports whether a checkpoint is due after the last batch by the number of batches. With
// staleness it is due at the first place after that number where the run may stop.
func (t *trainer) isCounted() bool {
	every, since := t.cfg.CheckpointEvery, 1
	if t.pipe != nil {
		since = (t.batch()-1)%drainEvery + 1
	}
	return every > 0 && t.batch()/every > (t.batch()-since)/every
}

// drain makes the updates of all batches that are under way, and counts their losses.
func (t *trainer) drain() error {
	for !t.whole() {
		s, err := t.pipe.end()
		if err != nil {
			return fmt.Errorf("epoch %d, up to batch %d: %w", t.pos.Epoch+1, t.batch(), err)
		}
		t.count(s)
	}
	if err := t.settle(); err != nil {
		return fmt.Errorf("epoch %d, up to batch %d: %w", t.pos.Epoch+1, t.batch(), err)
	}
	return nil
}

// count adds the results of a batch to those of the epoch.
func (t *trainer) count(s stepped) {
	t.pos.Loss += s.loss * float64(t.stepper.edgesInMean(s.edges))
	t.pos.Edges += uint64(s.edges)
	t.pos.Scores += 2 * uint64(s.edges) * uint64(1+t.cfg.Negatives)
}

// step trains on the next batch of a part: on its edges or, if all entities are negatives, on
// queries of the training set. order is the order of the n edges, or queries.
func (t *trainer) step(p *triples.Part, order *rng.Filler, n int) error {
	key := t.batchKey(t.batch())
	if t.cfg.Negatives == setting.NegativesAll {
		at := t.places(nil, order, n, t.batch())
		loss, edges, err := t.stepper.side.full(t.data.trainIndex, at, key)
		t.pos.Loss += loss * float64(t.stepper.edgesInMean(edges))
		t.pos.Edges += uint64(edges)
		t.pos.Scores += uint64(len(at)) * uint64(t.data.entities)
		return err
	}
	t.source.Touch()
	if t.pipe != nil {
		s, err := t.pipe.step(t.edges(nil, new([]uint32), p, order, t.batch()), key)
		t.count(s)
		return err
	}
	loss, edges, err := t.exactStep(p, order, n)
	t.count(stepped{loss, edges})
	return err
}

// exactStep takes the step of a batch. Where edges are compared one by one it draws the next batch
// of the part at the same time.
func (t *trainer) exactStep(p *triples.Part, order *rng.Filler, n int) (loss float64, edges int,
	err error) {
	s, batch := t.stepper, t.batch()
	draw := func(d *drawn, batch int) {
		d.taken = t.edges(d.taken[:0], &d.places, p, order, batch)
		s.draw(d, d.taken, t.batchKey(batch))
	}
	if s.ahead.key == t.batchKey(batch) && len(s.ahead.edges) > 0 {
		s.drawn, s.ahead = s.ahead, s.drawn
	} else {
		draw(s.drawn, batch)
	}
	if s.later = nil; (batch+1)*s.batch < n && s.enc == nil {
		s.later = func(d *drawn) { draw(d, batch+1) }
	}
	edges = len(s.edges)
	loss, err = s.stepDrawn()
	return loss, edges, err
}

// batchKey returns the random key of a batch of the current part.
func (t *trainer) batchKey(batch int) uint64 {
	return rng.Key(batchDomain, t.cfg.Seed, t.pos.Epoch, uint64(t.pos.Part), uint64(batch))
}

// places returns the numbers of a batch's items, of n that a part has, in the memory of to.
func (t *trainer) places(to []uint32, order *rng.Filler, n, batch int) []uint32 {
	first, end := batch*t.stepper.batch, min(n, (batch+1)*t.stepper.batch)
	to = mem.Sized(to, end-first)
	order.Fill(to, uint64(first))
	return to
}

// edges appends the edges of a batch to to. at is memory for their numbers.
func (t *trainer) edges(to []triples.Triple, at *[]uint32, p *triples.Part, order *rng.Filler,
	batch int) []triples.Triple {
	*at = t.places(*at, order, len(p.Edges), batch)
	for _, i := range *at {
		to = append(to, p.Edges[i])
	}
	return to
}

// FinishEpoch evaluates if an evaluation is due, and returns the record of the epoch.
func (t *trainer) FinishEpoch(ctx context.Context) (runs.Record, error) {
	epoch := int(t.pos.Epoch) + 1
	edges := t.pos.Edges
	if t.cfg.Negatives == setting.NegativesAll { // each edge answers two queries
		edges /= 2
	}
	rec := runs.LinkEpoch{Epoch: epoch, Loss: t.pos.Loss / float64(max(1, edges)), Rate: t.rate(),
		Time: t.pos.Time, Edges: edges, Batches: t.pos.Batches, Scores: t.pos.Scores}
	begun := time.Now()
	if err := t.source.count(t.pos.Epoch, &rec); err != nil {
		return nil, err
	}
	if len(t.data.val) > 0 && t.Evaluates(epoch) {
		rows, err := t.scored(ctx)
		if err != nil {
			return nil, err
		}
		res, err := t.ranks(ctx, rows, t.data.val, false)
		if err != nil {
			return nil, fmt.Errorf("evaluate epoch %d on the validation edges: %w", epoch, err)
		}
		rec.Val = &res.MRR
		if rec.Best, err = t.compare(ctx, res.MRR, epoch, rows); err != nil {
			return nil, err
		}
	}
	if launches := runs.Launches(t.pos.Launches); launches.Calls > 0 {
		rec.Launches = &launches
	}
	rec.Eval = time.Since(begun).Seconds()
	rec.RSS, rec.RSSPeak = mem.RSS()
	rec.Held = t.budget.Used()
	t.pos.Epoch, t.pos.Part, t.pos.Batch = t.pos.Epoch+1, 0, 0
	t.pos.Loss, t.pos.Edges, t.pos.Batches, t.pos.Scores, t.pos.Time = 0, 0, 0, 0, 0
	t.pos.Wait, t.pos.Launches = 0, backend.Launches{}
	return &rec, nil
}

// scored returns the vectors of all entities as a decoder scores them now.
func (t *trainer) scored(ctx context.Context) ([]float32, error) {
	e := t.stepper.enc
	if err := t.download(); err != nil {
		return nil, err
	}
	if e == nil {
		return t.model.entities.Values, nil
	}
	if err := t.source.learned(ctx, e.learned); err != nil {
		return nil, err
	}
	all := e.all.Values
	return all, e.encoder.All(ctx, all)
}

// ranks ranks edges with the current relations and with rows as the vectors of entities, or the
// current ones, or the best ones, that are on disk.
func (t *trainer) ranks(ctx context.Context, rows []float32, edges []triples.Triple,
	best bool) (*rank.Result, error) {
	v, known, err := t.source.scored(ctx, rows, best)
	if err != nil {
		return nil, err
	}
	s := t.model.scorer(t.pool)
	s.Answers = rank.AnswersOf(t.store.Meta())
	if t.cfg.Backend == backend.CUDA {
		s.On, s.Rows = t.stepper.be, t.model.entities.there()
		if err := s.On.Trim(); err != nil {
			return nil, err
		}
	}
	res, err := rank.Ranks(ctx, s, v, edges, rank.Config{Known: known,
		Candidates: t.cfg.Candidates, Seed: t.cfg.Seed, PassBytes: known.PassBytes()})
	return res, errors.Join(err, known.Close())
}

// compare keeps the rows if they are the best so far, and returns whether they are. entities are
// the vectors of entities.
func (t *trainer) compare(ctx context.Context, mrr float64, epoch int,
	entities []float32) (best bool, err error) {
	if !t.Improves(mrr, epoch) {
		return false, nil
	}
	return true, t.keepBest(ctx, entities)
}

// keepBest keeps the rows as those of the best evaluation. entities are the vectors of entities.
func (t *trainer) keepBest(ctx context.Context, entities []float32) error {
	t.best.keep(entities, t.model.relations)
	unsaved, err := t.source.keepBest(context.WithoutCancel(ctx))
	t.BestUnsaved = t.BestUnsaved || unsaved
	return err
}

// Test ranks the test edges with the best rows, and puts the last rows back afterwards. Without
// validation edges the last rows are the best.
func (t *trainer) Test(ctx context.Context) error {
	if !t.pos.HasBest {
		rows, err := t.scored(ctx)
		if err != nil {
			return err
		}
		t.pos.HasBest, t.pos.BestEpoch = true, int(t.pos.Epoch)
		if err := t.keepBest(ctx, rows); err != nil {
			return err
		}
	}
	if len(t.data.test) == 0 {
		return nil
	}
	if err := t.swapBest(); err != nil {
		return err
	}
	res, err := t.ranks(ctx, t.model.entities.Values, t.data.test, true)
	if err := errors.Join(err, t.swapBest()); err != nil {
		return fmt.Errorf("test: %w", err)
	}
	res.Relations = nil
	t.pos.Test = res
	return nil
}
