package paged

import (
	"context"

	"gdb/internal/bug"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/partition"
	"gdb/train/link/triples"
)

// piece is what is trained on at a time: some buckets of a set.
type piece struct {
	set     int
	buckets []partition.Bucket
}

// cut divides the buckets of each set of an epoch into pieces of at most most edges. Each set has
// at least one piece, even without edges.
func cut(e *partition.Epoch, count func(partition.Bucket) uint64, most int) (out []piece) {
	for set := range e.Sets() {
		p, edges := piece{set: set}, 0
		for _, k := range e.Buckets(set) {
			n := int(count(k))
			if n == 0 {
				continue
			}
			if edges+n > most {
				out = append(out, p)
				p, edges = piece{set: set}, 0
			}
			p.buckets, edges = append(p.buckets, k), edges+n
		}
		out = append(out, p)
	}
	return out
}

// edges holds the edges of a piece. Their ends are rows in partitions until move.
type edges struct {
	list []triples.Triple
	of   []stretch
}

// stretch is a range of edges of one bucket. It ends before edge end and begins where the
// previous stretch ends.
type stretch struct {
	bucket partition.Bucket
	end    int
}

// read reads the edges of a piece, in the order of the file.
func (e *edges) read(ctx context.Context, sets *partition.Buckets, p *piece) error {
	m := sets.Map()
	e.list, e.of = e.list[:0], e.of[:0]
	return sets.Read(ctx, p.buckets, func(k partition.Bucket, some edgefile.Edges) error {
		for i, src := range some.Src {
			_, head := m.Place(layout.NodeID(src))
			_, tail := m.Place(layout.NodeID(some.Dst[i]))
			t := triples.Triple{Head: uint32(head), Tail: uint32(tail)}
			if some.Rel != nil {
				t.Relation = uint32(some.Rel[i])
			}
			e.list = append(e.list, t)
		}
		e.of = append(e.of, stretch{k, len(e.list)})
		return nil
	})
}

// move changes rows in partitions to rows of the buffer, given the first row of each partition.
func (e *edges) move(first func(part int) uint32) {
	at := 0
	for _, s := range e.of {
		from, to := first(int(s.bucket.From)), first(int(s.bucket.To))
		for ; at < s.end; at++ {
			e.list[at].Head += from
			e.list[at].Tail += to
		}
	}
}

// reading is a piece that is read ahead.
type reading struct {
	part  int
	edges edges
	done  chan error
}

// edgesOf puts the edges of a part into s.now, and starts to read those of the next part.
func (s *Source) edgesOf(ctx context.Context, part int) error {
	if s.ahead != nil && s.ahead.part == part {
		err := <-s.ahead.done
		s.now, s.ahead.edges = s.ahead.edges, s.now
		spare := s.ahead.edges
		if s.ahead = nil; err != nil {
			return err
		}
		s.readAhead(ctx, part+1, spare)
		return nil
	}
	s.drop()
	s.now.list = s.room(s.now.list)
	if err := s.now.read(ctx, s.sets, &s.pieces[part]); err != nil {
		return err
	}
	s.readAhead(ctx, part+1, s.spare)
	s.spare = edges{}
	return nil
}

// room returns a list, or the memory for one if list is nil.
func (s *Source) room(list []triples.Triple) []triples.Triple {
	if list == nil {
		return make([]triples.Triple, 0, s.once)
	}
	return list
}

// readAhead starts to read the edges of a part, if there is one.
func (s *Source) readAhead(ctx context.Context, part int, into edges) {
	if part >= len(s.pieces) {
		s.spare = into
		return
	}
	into.list = s.room(into.list)
	r := &reading{part: part, edges: into, done: make(chan error, 1)}
	s.ahead = r
	p := &s.pieces[part]
	go func() {
		defer bug.Catch()
		r.done <- r.edges.read(ctx, s.sets, p)
	}()
}

// drop waits for what is read ahead, and discards it.
func (s *Source) drop() {
	if s.ahead != nil {
		<-s.ahead.done
		s.spare, s.ahead = s.ahead.edges, nil
	}
}
