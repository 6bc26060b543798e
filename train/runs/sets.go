package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout/edgefile"

	"github.com/RoaringBitmap/roaring/v2"
)

// SetNames lists the sets of a store that a run is trained, validated and tested on.
var SetNames = []string{"train", "val", "test"}

// Sets says, by name, which members the sets had with which a run began. A checkpoint keeps it,
// since a store's splits can be replaced. Checkpoints of older versions have none.
type Sets map[string]SetSum

// SetSum is the number of members of a set and a checksum of them.
type SetSum struct {
	Count uint64 `json:"count"`
	Sum   uint32 `json:"crc32c"`
}

// sumIDs is how many ids are added to a checksum at a time.
const sumIDs = 4096

// SumOf returns the number of nodes in a set, and a checksum of their ids, ascending, in
// four bytes each.
func SumOf(set *roaring.Bitmap) SetSum {
	s := SetSum{Count: set.GetCardinality()}
	ids, some := set.ManyIterator(), make([]uint32, sumIDs)
	for n := ids.NextMany(some); n > 0; n = ids.NextMany(some) {
		s.Sum = codec.ChecksumUpdate(s.Sum, mem.BytesOf(some[:n]))
	}
	return s
}

// EdgeSets returns the sets of edges of a store. Checksums of their files are in its catalog.
func EdgeSets(m *kv.Meta) Sets {
	sets := Sets{}
	for _, e := range m.EdgeSplits {
		f, _ := m.File(edgefile.Path(e.Name))
		sets[e.Name] = SetSum{Count: e.Count, Sum: f.Checksum}
	}
	return sets
}

// Replaced says in which sets the store now differs from what the run began with; "" if in none, or
// if its checkpoint does not say what it began with.
func (s Sets) Replaced(now Sets) string {
	if len(s) == 0 {
		return ""
	}
	names := map[string]bool{}
	for _, sets := range []Sets{s, now} {
		for name := range sets {
			names[name] = true
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, had := s[name]
		set, has := now[name]
		switch {
		case !has:
			all = append(all, fmt.Sprintf("%s had %d and is not there", name, old.Count))
		case !had:
			all = append(all, fmt.Sprintf("%s was not there and has %d", name, set.Count))
		case old.Count != set.Count:
			all = append(all, fmt.Sprintf("%s had %d and has %d", name, old.Count, set.Count))
		case old.Sum != set.Sum:
			all = append(all, fmt.Sprintf("%s has %d as before, but others", name, set.Count))
		}
	}
	return strings.Join(all, ", ")
}

// OtherSets returns the error for resuming a run on a store whose sets were replaced. what is the
// result of Replaced.
func OtherSets(run, what string) error {
	return fmt.Errorf("train: run %s began with other splits than the store has now (%s): train "+
		"anew, or draw its splits again (%s split, with the same shares and --seed)", run, what,
		message.Program)
}

// OtherSetsNote returns the same as a note, for evaluating the run or predicting with it.
func OtherSetsNote(run, what string) string {
	return fmt.Sprintf("run %s was trained on other splits than the store has now (%s): what it "+
		"is tested on may be what it has learned from", run, what)
}
