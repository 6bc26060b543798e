package runs

// Record is the record of an epoch, whatever the run learns: an *Epoch or a *LinkEpoch. As JSON it
// is a line of metrics.jsonl.
type Record interface {
	// String returns the line of the epoch on standard output.
	String() string
	// Engine returns a line about what the epoch cost.
	Engine() string
	// Ordinal returns the number of the epoch, from 1.
	Ordinal() int
	// MeanLoss returns the mean loss over what was trained on.
	MeanLoss() float64
	// Scalars returns the values that are drawn over epochs.
	Scalars() []Scalar
}

// Scalar is a value under a name, such as metric/val.
type Scalar struct {
	Name  string
	Value float64
}

// Ordinal returns the number of the epoch, from 1.
func (r *Epoch) Ordinal() int { return r.Epoch }

// MeanLoss returns the mean loss over the nodes of the steps.
func (r *Epoch) MeanLoss() float64 { return r.Loss }

// Scalars returns what the epoch reached and cost.
func (r *Epoch) Scalars() []Scalar {
	all := []Scalar{{"loss", r.Loss}, {"metric/train", r.Train}}
	all = appendReached(all, r.Val, r.Rate)
	return append(all, Scalar{"epoch/seconds", r.Time}, Scalar{"epoch/evaluation_seconds", r.Eval},
		Scalar{"engine/bytes_read", float64(r.Read)}, Scalar{"engine/cache_hits", r.Hit},
		Scalar{"engine/io_wait", r.IOWait}, Scalar{"engine/edges_sampled", float64(r.Sampled)})
}

// Ordinal returns the number of the epoch, from 1.
func (r *LinkEpoch) Ordinal() int { return r.Epoch }

// MeanLoss returns the mean loss over the edges of the steps.
func (r *LinkEpoch) MeanLoss() float64 { return r.Loss }

// Scalars returns what the epoch reached and cost.
func (r *LinkEpoch) Scalars() []Scalar {
	all := appendReached([]Scalar{{"loss", r.Loss}}, r.Val, r.Rate)
	all = append(all, Scalar{"epoch/seconds", r.Time}, Scalar{"epoch/evaluation_seconds", r.Eval},
		Scalar{"engine/edges_scored", float64(r.Scores)})
	if r.Sets > 0 {
		all = append(all, Scalar{"engine/bytes_read", float64(r.Read)},
			Scalar{"engine/bytes_written", float64(r.Written)},
			Scalar{"engine/wait_seconds", r.Wait})
	}
	return all
}

// appendReached adds the metric of validation and the learning rate, where there are any.
func appendReached(all []Scalar, val *float64, rate float64) []Scalar {
	if val != nil {
		all = append(all, Scalar{"metric/val", *val})
	}
	if rate > 0 {
		all = append(all, Scalar{"rate", rate})
	}
	return all
}
