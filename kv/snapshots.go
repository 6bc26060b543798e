package kv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// SnapshotMeta is the record of a snapshot before that of Meta: the store as it was when the next
// commit was made.
type SnapshotMeta struct {
	Number       uint64
	Created      time.Time
	Nodes, Edges uint64
	// Same is the snapshot that a compaction made of this one: it has the same content, and is
	// opened in its place. 0 for none.
	Same uint64 `json:",omitempty"`
	// Meta describes the store as it was; nil if its files are gone, or of a small commit, of which
	// a file tells what it changed.
	Meta *Meta `json:",omitempty"`
}

// HoldMeta is a name that keeps a snapshot.
type HoldMeta struct {
	Name     string
	Snapshot uint64
	Created  time.Time
}

// History is what a catalog knows of the snapshots of a store, as of one moment.
type History struct {
	Head      *Meta          // the last snapshot that the catalog describes
	Snapshots []SnapshotMeta // those before, the oldest first
	Held      []SnapshotMeta // those after: of small commits, which the catalog does not know
	Holds     []HoldMeta     // by name
	Runs      []RunMeta      // by name
}

// SnapshotTime returns when the snapshot that m describes was committed.
func (m *Meta) SnapshotTime() time.Time {
	if m.Committed.IsZero() {
		return m.Created
	}
	return m.Committed
}

// Record returns the record of the snapshot that m describes.
func (m *Meta) Record() SnapshotMeta {
	return SnapshotMeta{Number: m.Snapshot, Created: m.SnapshotTime(), Nodes: m.Nodes,
		Edges: m.Edges, Meta: m}
}

// All returns the records of all snapshots, the oldest first.
func (h *History) All() []SnapshotMeta {
	return append(append(slices.Clip(h.Snapshots), h.Head.Record()), h.Held...)
}

// Last returns the number of the last snapshot.
func (h *History) Last() uint64 {
	if n := len(h.Held); n > 0 {
		return h.Held[n-1].Number
	}
	return h.Head.Snapshot
}

// On returns the metadata that a snapshot stands on: its own, or that of the last one before it
// which has some; the commits in between then make it. It is nil if there is none.
func (h *History) On(number uint64) (m *Meta) {
	if number >= h.Head.Snapshot {
		return h.Head
	}
	for _, s := range h.Snapshots {
		if s.Number <= number && s.Meta != nil {
			m = s.Meta
		}
	}
	return m
}

// Find returns the record of a snapshot, or of the one that a compaction made of it. False says
// that there never was such a snapshot.
func (h *History) Find(number uint64) (SnapshotMeta, bool) {
	for all := h.All(); ; {
		i, found := slices.BinarySearchFunc(all, number, func(s SnapshotMeta, n uint64) int {
			return cmp.Compare(s.Number, n)
		})
		switch {
		case !found:
			return SnapshotMeta{}, false
		case all[i].Same == 0:
			return all[i], true
		}
		number = all[i].Same // which is larger
	}
}

// Holders returns who keeps each snapshot, by the number of the record that describes it: names,
// and runs.
func (h *History) Holders() map[uint64][]string {
	by := map[uint64][]string{}
	add := func(number uint64, who string) {
		if s, found := h.Find(number); found {
			by[s.Number] = append(by[s.Number], who)
		}
	}
	for _, hold := range h.Holds {
		add(hold.Snapshot, hold.Name)
	}
	for _, r := range h.Runs {
		add(r.Snapshot, "run "+r.Name)
	}
	return by
}

// StoredName returns the name of the stored set of a split.
func (s *SplitMeta) StoredName() string { return cmp.Or(s.Set, s.Name) }

// StoredSet returns the name of the stored set of a name: that of the split, if it is one.
func (m *Meta) StoredSet(name string) string {
	for i := range m.Splits {
		if m.Splits[i].Name == name {
			return m.Splits[i].StoredName()
		}
	}
	return name
}

// Check fails if a record cannot describe a snapshot.
func (s *SnapshotMeta) Check() error {
	if s.Same != 0 && s.Same <= s.Number {
		return fmt.Errorf("snapshot %d is described by snapshot %d", s.Number, s.Same)
	}
	if s.Meta == nil {
		return nil
	}
	if s.Meta.Snapshot != s.Number {
		return fmt.Errorf("snapshot %d has the metadata of %d", s.Number, s.Meta.Snapshot)
	}
	return s.Meta.Check()
}

// SetSplits lists stored sets as splits, in the place of those of the same names.
func (m *Meta) SetSplits(sets map[string]*roaring.Bitmap) {
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		i := slices.IndexFunc(m.Splits, func(s SplitMeta) bool { return s.Name == name })
		if i < 0 {
			i, m.Splits = len(m.Splits), append(m.Splits, SplitMeta{Name: name})
		}
		m.Splits[i].Count = sets[name].GetCardinality()
	}
}
