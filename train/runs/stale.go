package runs

import "fmt"

// Stale sums up the hidden states of earlier steps that the steps of an epoch read, of nodes
// outside memory, by their ages in epochs.
type Stale struct {
	States uint64 `json:"states"`
	// Sum adds all ages up, and Most is the greatest.
	Sum  uint64 `json:"epochs_sum"`
	Most uint64 `json:"epochs_most"`
	// Missing counts those that were never written, or too long ago: lists left their nodes out.
	Missing uint64 `json:"missing"`
}

// Add adds what another step read.
func (s *Stale) Add(o Stale) {
	s.States, s.Sum, s.Missing = s.States+o.States, s.Sum+o.Sum, s.Missing+o.Missing
	s.Most = max(s.Most, o.Most)
}

// String says how old states were.
func (s *Stale) String() string {
	return fmt.Sprintf("states %.2g epochs old, at most %d, %.1f %% missing",
		float64(s.Sum)/float64(max(1, s.States)), s.Most,
		100*float64(s.Missing)/float64(max(1, s.States+s.Missing)))
}
