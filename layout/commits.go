package layout

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Commit is a small commit: a file of its own beside the levels, until all of these are written out
// as a level. Nodes have the numbers of the store. Gone names edges that are no longer there, of
// those before the commit: each entry of the lists that equals one in ends, type and time. Then
// come those of Added.
type Commit struct {
	CommitHead
	Gone, Added Edges
}

// CommitHead is a commit without its edges.
type CommitHead struct {
	Snapshot uint64
	Created  time.Time
	Nodes    uint64   // of the store before
	New      uint64   // nodes that it adds
	Names    []string `json:",omitempty"` // their ids, unless these are their numbers
	Removed  uint64   // entries of in-lists that Gone takes away

	// What is added to the counts of kv.GraphStats.
	SelfLoops  int64
	TypeCounts []int64 `json:",omitempty"`
}

// Edges are edges in memory, in any order. Types, Weights and Times are nil where the store has
// none.
type Edges struct {
	Src, Dst []NodeID
	Types    []uint16
	Weights  []float32
	Times    []int64
}

// Len returns the number of edges.
func (e *Edges) Len() int { return len(e.Src) }

// Append appends edge i of another list.
func (e *Edges) Append(of *Edges, i int) {
	e.Src, e.Dst = append(e.Src, of.Src[i]), append(e.Dst, of.Dst[i])
	if of.Types != nil {
		e.Types = append(e.Types, of.Types[i])
	}
	if of.Weights != nil {
		e.Weights = append(e.Weights, of.Weights[i])
	}
	if of.Times != nil {
		e.Times = append(e.Times, of.Times[i])
	}
}

// EdgeKey is what tells an edge from others but for those that are parallel to it and have the same
// type and time.
type EdgeKey struct {
	Src, Dst NodeID
	Type     uint16
	Time     int64
}

// Key returns the key of edge i.
func (e *Edges) Key(i int) EdgeKey {
	k := EdgeKey{Src: e.Src[i], Dst: e.Dst[i]}
	if e.Types != nil {
		k.Type = e.Types[i]
	}
	if e.Times != nil {
		k.Time = e.Times[i]
	}
	return k
}

// Count adds edges to the counts of the commit, or takes them away if sign is -1.
func (c *CommitHead) Count(e *Edges, sign int64) {
	for i := range e.Src {
		if e.Src[i] == e.Dst[i] {
			c.SelfLoops += sign
		}
		if e.Types != nil {
			c.TypeCounts[e.Types[i]] += sign
		}
	}
}

const (
	commitKind   = "commit"
	commitEnding = ".commit"
	// commitMost bounds a file of a commit, in bytes.
	commitMost = 64 << 20
)

// CommitPath returns the path of the file of a commit, relative to the store.
func CommitPath(snapshot uint64) string {
	return LevelsDir + "/" + strconv.FormatUint(snapshot, 10) + commitEnding
}

// CommitNumber returns the snapshot that a file in LevelsDir is the commit of.
func CommitNumber(name string) (snapshot uint64, is bool) {
	number, is := strings.CutSuffix(name, commitEnding)
	snapshot, err := strconv.ParseUint(number, 10, 64)
	return snapshot, is && err == nil
}

// WriteCommit writes the file of a commit. It is durable, and a part of the store, when WriteCommit
// returns. It returns the size of the file, in bytes.
func WriteCommit(fs vfs.FS, s *Store, c *Commit) (size int64, err error) {
	head, err := json.Marshal(&c.CommitHead)
	if err != nil {
		return 0, fmt.Errorf("layout: commit %d: %w", c.Snapshot, err)
	}
	b := codec.Enc{}
	b.U32(0) // the checksum
	b.U32(uint32(len(head)))
	b.Bytes(head)
	for _, e := range []*Edges{&c.Gone, &c.Added} {
		b.U32(uint32(e.Len()))
		b.Bytes(mem.BytesOf(e.Src))
		b.Bytes(mem.BytesOf(e.Dst))
		b.U8(uint8(bitsOf(e.Types != nil, e.Weights != nil, e.Times != nil)))
		b.Bytes(mem.BytesOf(e.Types))
		b.Bytes(mem.BytesOf(e.Weights))
		b.Bytes(mem.BytesOf(e.Times))
	}
	raw := sealCommit(b.B, s.meta.UUID, c.Snapshot)
	return int64(len(raw)), files.WriteAtomic(fs, s.Path(CommitPath(c.Snapshot)), raw)
}

// sealCommit writes the checksum of the file of a commit.
func sealCommit(raw []byte, uuid kv.UUID, snapshot uint64) []byte {
	sum := codec.BlockSum(commitKind, uuid, snapshot, raw[4:])
	binary.LittleEndian.PutUint32(raw, sum)
	return raw
}

func bitsOf(set ...bool) (n int) {
	for i, is := range set {
		if is {
			n |= 1 << i
		}
	}
	return n
}

// readCommit reads the file of a commit.
func readCommit(s *Store, snapshot uint64) (*Commit, error) {
	path := CommitPath(snapshot)
	raw, err := files.ReadSmall(s.fs, s.Path(path), commitMost)
	if err != nil {
		return nil, err
	}
	c, err := decodeCommit(raw, s.meta.UUID, snapshot)
	if err == nil {
		err = c.check(s.meta)
	}
	if err != nil {
		return nil, &CorruptionError{Path: path, Block: -1, What: err.Error()}
	}
	return c, nil
}

// VerifyCommit checks the file of a commit by itself, and returns its size in bytes.
func (s *Store) VerifyCommit(snapshot uint64) (size int64, err error) {
	path := CommitPath(snapshot)
	raw, err := files.ReadSmall(s.fs, s.Path(path), commitMost)
	if err == nil {
		if _, bad := decodeCommit(raw, s.meta.UUID, snapshot); bad != nil {
			err = &CorruptionError{Path: path, Block: -1, What: bad.Error()}
		}
	}
	return int64(len(raw)), err
}

func decodeCommit(raw []byte, uuid kv.UUID, snapshot uint64) (*Commit, error) {
	d := codec.NewDec(raw)
	sum := d.U32()
	if d.Err() != nil || sum != codec.BlockSum(commitKind, uuid, snapshot, raw[4:]) {
		return nil, errors.New("its checksum is wrong")
	}
	c := &Commit{}
	if err := json.Unmarshal(d.Bytes(int(d.U32())), &c.CommitHead); err != nil {
		return nil, errors.Join(err, d.Err())
	}
	for _, e := range []*Edges{&c.Gone, &c.Added} {
		n := int(d.U32())
		if n > d.Remaining()/8 {
			return nil, fmt.Errorf("%d edges in %d bytes", n, d.Remaining())
		}
		e.Src, e.Dst = words[NodeID](d, n), words[NodeID](d, n)
		has := d.U8()
		if has&1 != 0 {
			e.Types = words[uint16](d, n)
		}
		if has&2 != 0 {
			e.Weights = words[float32](d, n)
		}
		if has&4 != 0 {
			e.Times = words[int64](d, n)
		}
	}
	if d.Err() == nil && d.Remaining() > 0 {
		return nil, fmt.Errorf("%d bytes follow its end", d.Remaining())
	}
	return c, d.Err()
}

// words decodes n values, of memory of their own since bytes of a file may lie anywhere.
func words[T NodeID | uint16 | float32 | int64](d *codec.Dec, n int) []T {
	to := make([]T, n)
	copy(mem.BytesOf(to), d.Bytes(len(mem.BytesOf(to))))
	return to
}

// check checks a commit against the store as it was before.
func (c *Commit) check(m *kv.Meta) error {
	types := len(m.EdgeTypes)
	switch {
	case c.Snapshot != m.Snapshot+1 || c.Nodes != m.Nodes || c.New > MaxNodes-c.Nodes:
		return fmt.Errorf("snapshot %d adds %d nodes to %d, after snapshot %d of %d", c.Snapshot,
			c.New, c.Nodes, m.Snapshot, m.Nodes)
	case c.names(m.IDs.Kind) != uint64(len(c.Names)):
		return fmt.Errorf("%d ids of %d new nodes", len(c.Names), c.New)
	case c.New > 0 && (len(m.Features) > 0 || m.Labels != nil):
		return errors.New("it adds nodes without their rows")
	case c.Removed > m.Edges || len(c.TypeCounts) > types:
		return fmt.Errorf("%d edges of %d are gone, %d types of %d", c.Removed, m.Edges,
			len(c.TypeCounts), types)
	}
	for i, e := range []*Edges{&c.Gone, &c.Added} {
		if (e.Types != nil) != (types > 0) && e.Len() > 0 ||
			(e.Times != nil) != m.Timestamped && e.Len() > 0 ||
			i == 1 && (e.Weights != nil) != m.Weighted && e.Len() > 0 {
			return errors.New("its edges carry other attributes than those of the store")
		}
		for k := range e.Src {
			if uint64(max(e.Src[k], e.Dst[k])) >= c.Nodes+c.New ||
				e.Types != nil && int(e.Types[k]) >= types {
				return fmt.Errorf("edge %d to %d of %d nodes", e.Src[k], e.Dst[k], c.Nodes+c.New)
			}
		}
	}
	return nil
}

// names returns how many ids the commit has.
func (c *Commit) names(kind kv.IDKind) uint64 {
	if kind == kv.IDsDense {
		return 0
	}
	return c.New
}

// Held is a level in memory: that of small commits which no level of files has yet.
type Held struct {
	Of    []uint32 // the nodes of the level, by the numbers of the whole store, in order
	Edges Edges    // by the numbers of the whole store
	Names []string // the ids of new nodes, unless these are their numbers
	Bytes int64    // of the files
}

// errMoved says that commits were written out as a level while a store was opened.
var errMoved = errors.New("commits were written out as a level")

// heldNames lists the commits that have files in the store in dir, in order.
func heldNames(fs vfs.FS, dir string) ([]uint64, error) {
	names, err := fs.List(fs.PathJoin(dir, LevelsDir))
	if err != nil && !oserror.IsNotExist(err) {
		return nil, fmt.Errorf("layout: list commits of %s: %w", dir, err)
	}
	var commits []uint64
	for _, name := range names {
		if number, is := CommitNumber(name); is {
			commits = append(commits, number)
		}
	}
	slices.Sort(commits)
	return commits, nil
}

// openHeld makes the commits that follow the catalog's snapshot levels in memory: one of all edges
// that are gone, of levels before, and one of all that were added.
func (s *Store) openHeld(names []uint64) error {
	first, _ := slices.BinarySearch(names, s.meta.Snapshot+1)
	if first == len(names) {
		return nil
	}
	s.recorded = s.meta
	meta := *s.meta
	meta.Stats.TypeCounts = slices.Clone(meta.Stats.TypeCounts)
	s.meta = &meta
	var commits []*Commit
	bytes := int64(0)
	for _, number := range names[first:] {
		c, err := readCommit(s, number)
		if err != nil && oserror.IsNotExist(err) {
			return errMoved
		}
		if err != nil {
			return fmt.Errorf("layout: open %s: %w", s.dir, err)
		}
		commits = append(commits, c)
		bytes += c.bytes()
		meta.Snapshot, meta.Committed = number, c.Created
		meta.Nodes += c.New
		meta.Edges += uint64(c.Added.Len()) - c.Removed
		meta.Stats.SelfLoops += uint64(c.SelfLoops)
		for i, n := range c.TypeCounts {
			meta.Stats.TypeCounts[i] += uint64(n)
		}
	}
	s.held = commits
	s.levels = append(s.levels, s.levelsOf(commits, bytes)...)
	return nil
}

func (c *Commit) bytes() (n int64) {
	for _, e := range []*Edges{&c.Gone, &c.Added} {
		n += int64(len(mem.BytesOf(e.Src))*2 + len(mem.BytesOf(e.Types)) +
			len(mem.BytesOf(e.Weights)) + len(mem.BytesOf(e.Times)))
	}
	for _, name := range c.Names {
		n += int64(len(name))
	}
	return n
}

// LevelsOf returns the levels of a commit that follows the store, in memory.
func (s *Store) LevelsOf(c *Commit) []*Level { return s.levelsOf([]*Commit{c}, c.bytes()) }

// levelsOf returns the levels of commits, of which the store tells, or of one that follows it.
func (s *Store) levelsOf(commits []*Commit, bytes int64) (levels []*Level) {
	gone, added, removed := mergeCommits(commits)
	last, first := commits[len(commits)-1], commits[0].Nodes
	end := last.Nodes + last.New
	level := func(e Edges, names []string, isGone bool) {
		h := &Held{Edges: e, Names: names, Bytes: bytes}
		for _, ends := range [][]NodeID{e.Src, e.Dst} {
			h.Of = append(h.Of, mem.View[uint32](mem.BytesOf(ends))...)
		}
		of := kv.LevelMeta{Snapshot: last.Snapshot, Created: last.Created,
			Edges: uint64(e.Len()), Gone: isGone}
		if isGone {
			of.Removed = removed
		} else {
			of.Bytes = bytes
			of.Nodes = end - first
			for v := first; v < end; v++ {
				h.Of = append(h.Of, uint32(v))
			}
		}
		slices.Sort(h.Of)
		h.Of = slices.Compact(h.Of)
		meta := *s.meta
		meta.Nodes, meta.Edges, meta.Levels, meta.Files = uint64(len(h.Of)), of.Edges, nil, nil
		meta.Below = meta.Nodes - of.Nodes
		l := &Level{Store: &Store{fs: s.fs, dir: s.dir, meta: &meta, catalog: s.catalog}, Of: of,
			First: first, Held: h}
		levels = append(levels, l)
	}
	if gone.Len() > 0 {
		level(gone, nil, true)
	}
	var names []string
	for _, c := range commits {
		names = append(names, c.Names...)
	}
	if added.Len() > 0 || end > first {
		level(added, names, false)
	}
	return levels
}

// mergeCommits returns what commits take away of what was there before all of them, how many
// entries these are, and what they add and none of them takes away again.
func mergeCommits(commits []*Commit) (gone, added Edges, removed uint64) {
	last := map[EdgeKey]int{} // the last commit that takes an edge away
	for i, c := range commits {
		removed += c.Removed
		for k := range c.Gone.Src {
			key := c.Gone.Key(k)
			if _, is := last[key]; !is && uint64(max(key.Src, key.Dst)) < commits[0].Nodes {
				gone.Append(&c.Gone, k)
			}
			last[key] = i
		}
	}
	for i, c := range commits {
		for k := range c.Added.Src {
			if at, is := last[c.Added.Key(k)]; is && at > i {
				removed--
				continue
			}
			added.Append(&c.Added, k)
		}
	}
	return gone, added, removed
}

// HeldCommits returns the small commits that no level of files has yet, and Recorded the store as
// its catalog describes it, without them.
func (s *Store) HeldCommits() []*Commit { return s.held }

// Recorded returns the metadata of the catalog, which do not tell of held commits.
func (s *Store) Recorded() *kv.Meta {
	if s.recorded == nil {
		return s.meta
	}
	return s.recorded
}

// openRetries bounds how often a store is opened again whose commits are written out meanwhile.
const openRetries = 100

// OpenLive opens a store that may have levels: the caller reads them, or what it calls refuses
// them. Files of a store with levels are opened by packages that merge them; a package that does
// not gets an error that wraps ErrLevels.
func OpenLive(ctx context.Context, fs vfs.FS, dir string) (s *Store, err error) {
	for range openRetries {
		if s, err = openOnce(ctx, fs, dir); !errors.Is(err, errMoved) {
			break
		}
	}
	return s, err
}

// openOnce lists the files of commits before it reads the catalog: a commit that it does not see is
// in a level that the catalog lists.
func openOnce(ctx context.Context, fs vfs.FS, dir string) (*Store, error) {
	commits, err := heldNames(fs, dir)
	if err != nil {
		commits = nil // dir is no store, or open says what is wrong
	}
	s, failed := open(ctx, fs, dir)
	if failed != nil {
		return nil, failed
	}
	if s.meta.Manifest == 0 || err != nil {
		return s, err
	}
	return s, s.openAll(ctx, commits)
}

// openAll opens what the metadata lists, and commits that follow it.
func (s *Store) openAll(ctx context.Context, commits []uint64) error {
	if s.meta.Manifest == 0 {
		return nil
	}
	if err := s.openLevels(ctx); err != nil {
		return err
	}
	return s.openHeld(commits)
}
