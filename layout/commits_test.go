package layout

import (
	"bytes"
	"reflect"
	"testing"

	"gdb/internal/files"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func testCommit() *Commit {
	return &Commit{CommitHead: CommitHead{Snapshot: 5, Nodes: 10, New: 2, Names: []string{"x", "y"},
		Removed: 1, SelfLoops: -1, TypeCounts: []int64{1, 0}},
		Gone: Edges{Src: []NodeID{1}, Dst: []NodeID{1}, Types: []uint16{1}, Times: []int64{-7}},
		Added: Edges{Src: []NodeID{11, 0}, Dst: []NodeID{10, 3}, Types: []uint16{0, 1},
			Weights: []float32{.5, 2}, Times: []int64{1 << 40, 0}}}
}

// TestCommitFile: what is written is read; a commit that does not follow the store is damage.
func TestCommitFile(t *testing.T) {
	fs := vfs.NewMem()
	meta := kv.Meta{UUID: kv.UUID{7}, Snapshot: 4, Nodes: 10, Edges: 9,
		EdgeTypes: []string{"a", "b"}, Weighted: true, Timestamped: true,
		IDs: kv.IDsMeta{Kind: kv.IDsString}}
	s := NewStore(fs, "s", &meta)
	if err := fs.MkdirAll("s/levels", 0o755); err != nil {
		t.Fatal(err)
	}
	want := testCommit()
	if _, err := WriteCommit(fs, s, want); err != nil {
		t.Fatal(err)
	}
	if got, err := readCommit(s, 5); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
	for what, change := range map[string]func(m *kv.Meta){
		"nodes":     func(m *kv.Meta) { m.Nodes = 9 },
		"snapshot":  func(m *kv.Meta) { m.Snapshot = 3 },
		"edges":     func(m *kv.Meta) { m.Edges = 0 },
		"no weight": func(m *kv.Meta) { m.Weighted = false },
		"no types":  func(m *kv.Meta) { m.EdgeTypes = nil },
		"dense":     func(m *kv.Meta) { m.IDs.Kind = kv.IDsDense },
		"rows":      func(m *kv.Meta) { m.Features = []kv.RowsMeta{{}} },
		"other":     func(m *kv.Meta) { m.UUID[3]++ },
	} {
		other := meta
		change(&other)
		if _, err := readCommit(NewStore(fs, "s", &other), 5); err == nil {
			t.Errorf("%s: a commit of another store is read", what)
		}
	}
}

// TestMergeCommits: an edge that is added again stays, and one that a commit added and a later one
// took away was never there.
func TestMergeCommits(t *testing.T) {
	edges := func(ends ...NodeID) (e Edges) {
		for i := 0; i < len(ends); i += 2 {
			e.Src, e.Dst = append(e.Src, ends[i]), append(e.Dst, ends[i+1])
		}
		return e
	}
	gone, added, removed := mergeCommits([]*Commit{
		{CommitHead: CommitHead{Nodes: 9}, Added: edges(1, 2, 1, 2, 3, 4, 3, 9)},
		{CommitHead: CommitHead{Removed: 4}, Gone: edges(1, 2, 7, 8, 3, 9), Added: edges(1, 2)},
		{CommitHead: CommitHead{Removed: 1}, Gone: edges(3, 4, 7, 8), Added: edges(7, 8)},
	})
	if want := edges(1, 2, 7, 8, 3, 4); !reflect.DeepEqual(gone, want) {
		t.Errorf("gone %v, want %v", gone, want)
	}
	if want := edges(1, 2, 7, 8); !reflect.DeepEqual(added, want) || removed != 1 {
		t.Errorf("added %v, want %v; %d removed of levels below, want 1", added, want, removed)
	}
}

// FuzzDecodeCommit: bytes are decoded, or refused.
func FuzzDecodeCommit(f *testing.F) {
	fs := vfs.NewMem()
	s := NewStore(fs, "s", &kv.Meta{})
	if err := fs.MkdirAll("s/levels", 0o755); err != nil {
		f.Fatal(err)
	}
	if _, err := WriteCommit(fs, s, testCommit()); err != nil {
		f.Fatal(err)
	}
	raw, err := files.ReadSmall(fs, "s/levels/5.commit", commitMost)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		sealed := sealCommit(append(make([]byte, 4), bytes.Clone(b)...), kv.UUID{}, 5)
		c, err := decodeCommit(sealed, kv.UUID{}, 5)
		if err == nil {
			_ = c.check(&kv.Meta{Snapshot: 4, Nodes: 10, Edges: 9})
		}
	})
}
