package cachesim

// fifo is a queue of slots, linked through newer, which the queues of a policy share since a slot
// is in only one of them. The zero value is an empty queue.
type fifo struct {
	oldest, newest uint32
	length         int
}

// push adds slot s as the newest.
func (q *fifo) push(newer []uint32, s uint32) {
	if q.length == 0 {
		q.oldest = s
	} else {
		newer[q.newest] = s
	}
	q.newest = s
	q.length++
}

// pop removes and returns the oldest slot. The queue must not be empty.
func (q *fifo) pop(newer []uint32) uint32 {
	s := q.oldest
	q.oldest = newer[s]
	q.length--
	return s
}
