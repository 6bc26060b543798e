package ingest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/steps"
)

// nodeMap maps external ids to node ids. Ids of the modes rows and ranked are looked up, one by
// one, in memory; ids of modes that join are sorted by key and joined with the dictionary.
type nodeMap struct {
	p     *pipeline
	mode  idMode
	nodes uint64
	dense bool          // ids of edges are numbers 0..nodes-1, permuted by perm
	perm  steps.Order   // nil: nodes keep the order of their numbers
	set   *steps.IDSet  // of ranked ids that are not dense
	dict  []extsort.Run // of modes that join rows: (key, text, node) by key
	seed  uint64
}

// node returns the node of an integer id. Only for modes that do not join.
func (m *nodeMap) node(id uint64) (uint32, bool) {
	if m.dense {
		if id >= m.nodes {
			return 0, false
		}
	} else {
		r, ok := m.set.Rank(id)
		if !ok {
			return 0, false
		}
		id = uint64(r)
	}
	if m.perm != nil {
		id = m.perm.At(id)
	}
	return uint32(id), true
}

// external returns the id of a node as the user knows it, for messages. It is slow.
func (m *nodeMap) external(ctx context.Context, node uint32) string {
	number := uint64(node)
	if m.perm != nil {
		number = m.perm.Inverse(number)
	}
	id, found := number, m.dense && m.mode != idTable && m.mode != idNamed
	switch {
	case found:
	case m.p.info.Ranged:
		if text, ok := m.typedExternal(ctx, node); ok {
			return text
		}
	case m.set != nil:
		k := uint64(0)
		_ = m.set.Each(func(v uint64) error {
			if k == number {
				id, found = v, true
			}
			k++
			return nil
		})
	default:
		if text, ok := m.search(ctx, node); ok {
			return text
		}
	}
	if !found {
		return fmt.Sprintf("number %d", node)
	}
	return strconv.FormatUint(id, 10)
}

// search reads the dictionary for a node.
func (m *nodeMap) search(ctx context.Context, node uint32) (text string, ok bool) {
	d, err := m.openDict(ctx)
	if err != nil {
		return "", false
	}
	defer d.Close()
	for {
		e, more, err := d.Next(ctx)
		if err != nil || !more {
			return "", false
		}
		if e.Aux == uint64(node) {
			if m.mode == idWide {
				return strconv.FormatUint(e.Key, 10), true
			}
			return string(e.Text), true
		}
	}
}

func (m *nodeMap) openDict(ctx context.Context) (*extsort.Entries, error) {
	return extsort.OpenEntries(ctx, m.p.Sorter("dict", 0, m.p.Memory.Merge), m.dict)
}

func (m *nodeMap) free() error {
	if m.set == nil {
		return nil
	}
	return m.set.Free()
}

// permutation returns the order of n nodes, or nil if they keep that of their numbers.
func (p *pipeline) permutation(n uint64) steps.Order {
	switch {
	case p.level != nil && p.level.Of != nil:
		return p.level
	case p.again != nil && p.again.Parts() != nil:
		return p.again
	case p.opt.Partitioner == "random":
		return rng.NewPermutation(n, rng.Key(p.opt.Seed, n))
	}
	return nil
}

// idsResult is what numbering gives.
type idsResult struct {
	Nodes uint64
	Kind  kv.IDKind
	Seed  uint64 // of the hash in the dictionary
	Dense bool
	Dict  []extsort.Run
	Files []kv.FileMeta
	Types []kv.NodeTypeMeta // that ids begin with
	Level *levelRun         `json:",omitempty"` // of a level, its nodes
}

// hashSeeds is the number of seeds that are tried. A collision among four billion ids happens in
// one of three ingests; sixteen in a row do not, unless the hash is broken.
const hashSeeds = 16

// number gives every id its node.
func (p *pipeline) number(ctx context.Context, r *results) (*nodeMap, error) {
	for {
		ids, err := steps.Do(ctx, p.Work, "ids", func(ctx context.Context, out *idsResult) error {
			return p.numberAs(ctx, r.scan, out)
		})
		if err == nil && p.into != nil && p.level == nil { // the step was done before
			p.level, err = p.loadLevel(ctx, ids)
		}
		if err == nil {
			r.ids = ids
			if t, ok := p.src.(typePlacer); ok {
				p.firsts = ids.firsts()
				t.PlaceTypes(p.firsts)
			}
			m, err := p.newNodeMap(ctx, r.scan, ids)
			if err == nil {
				p.noteOutside(ctx, r.scan, m)
			}
			return m, err
		}
		if !errors.Is(err, steps.ErrCollision) || r.scan.HashSeed+1 == hashSeeds {
			return nil, err
		}
		p.hashSeed = r.scan.HashSeed + 1
		var used []string
		for _, run := range append(r.scan.Edges, r.scan.IDs...) {
			used = append(used, run.Name)
		}
		if err := p.Journal.Forget("scan", used); err != nil {
			return nil, err
		}
		if err := p.Sweep(); err != nil {
			return nil, err
		}
		if r.scan, err = p.scan(ctx); err != nil {
			return nil, err
		}
	}
}

// noteOutside notes that nodes are in the edges only, although there is a table of nodes: ids may
// be written in two ways, as 7 and 007. It says nothing where they may be in a store.
func (p *pipeline) noteOutside(ctx context.Context, s *scanResult, m *nodeMap) {
	if s.NodeRows == 0 || m.nodes <= s.NodeRows || p.info.Ranged || p.opt.Lacks != nil {
		return
	}
	example := ""
	if s.Mode == idTable || s.Mode == idText { // numbered as they came, the table first
		number := s.NodeRows
		if m.perm != nil {
			number = m.perm.At(number)
		}
		example = fmt.Sprintf(", such as %q", m.external(ctx, uint32(number)))
	}
	p.note("%d nodes are in edges but not in the table of nodes%s", m.nodes-s.NodeRows, example)
}

func (p *pipeline) newNodeMap(ctx context.Context, s *scanResult, ids *idsResult) (*nodeMap,
	error) {
	m := &nodeMap{p: p, mode: s.Mode, nodes: ids.Nodes, dict: ids.Dict,
		// Edges of the other two have numbers already.
		dense: ids.Dense || s.Mode == idTable || s.Mode == idNamed,
		seed:  s.HashSeed}
	m.perm = p.permutation(m.nodes)
	if s.Mode != idRanked || ids.Dense {
		return m, nil
	}
	var err error
	m.set, err = p.loadSet(ctx, s.IDs)
	return m, err
}

// loadSet reads the set of ids that the scan wrote.
func (p *pipeline) loadSet(ctx context.Context, runs []extsort.Run) (*steps.IDSet, error) {
	set, err := steps.NewIDSet(p.Budget, runs[0].Records*64)
	if err != nil {
		return nil, err
	}
	at := 0
	err = extsort.Merge(ctx, p.Sorter("set", 1, p.Memory.Merge), runs, func(w []uint64) error {
		at = set.Load(at, w)
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, set.Free())
	}
	set.Index()
	return set, nil
}

// numberAs numbers the ids of a scan and writes the dictionary, if one is needed.
func (p *pipeline) numberAs(ctx context.Context, s *scanResult, out *idsResult) error {
	out.Seed = s.HashSeed
	var err error
	if p.into != nil {
		err = p.enter(ctx, s, out)
	} else {
		err = p.numberAlone(ctx, s, out)
	}
	if err != nil {
		return err
	}
	if out.Nodes > nodesMax {
		return input.Wrong(p.info.Paths[0], "a store has at most 4294967296 nodes",
			"there are %d nodes", out.Nodes)
	}
	p.KeepFiles(out.Files...)
	p.KeepRuns(out.Dict)
	return nil
}

// numberAlone numbers the ids of a store of its own.
func (p *pipeline) numberAlone(ctx context.Context, s *scanResult, out *idsResult) (err error) {
	switch s.Mode {
	case idRows:
		err = p.numberRows(ctx, s, out)
	case idRanked:
		err = p.numberRanked(ctx, s, out)
	case idWide:
		err = p.numberWide(ctx, s, out)
	case idNamed:
		err = p.numberNamed(ctx, out)
	default:
		err = p.numberText(ctx, s, out)
	}
	return err
}

// errEmpty returns the error of a graph without nodes.
func (p *pipeline) errEmpty() error {
	where := "the source"
	if len(p.info.Paths) > 0 {
		where = p.info.Paths[0]
	}
	return input.Wrong(where, "give edges or features", "there are no nodes")
}

// numberRows numbers row ids: they are the numbers.
func (p *pipeline) numberRows(ctx context.Context, s *scanResult, out *idsResult) error {
	out.Nodes, out.Dense, out.Kind = s.Nodes, true, kv.IDsDense
	if p.again != nil {
		return p.numberAgain(ctx, out)
	}
	return p.integerDictionary(ctx, out, func(fn func(id uint64) error) error {
		for id := range out.Nodes {
			if err := fn(id); err != nil {
				return err
			}
		}
		return nil
	})
}

// numberRanked numbers integers by rank.
func (p *pipeline) numberRanked(ctx context.Context, s *scanResult, out *idsResult) error {
	set, err := p.loadSet(ctx, s.IDs)
	if err != nil {
		return err
	}
	out.Nodes, out.Dense, out.Kind = set.Count(), set.Dense(), kv.IDsDense
	if out.Dense {
		p.DropRuns(s.IDs)
	}
	return errors.Join(p.integerDictionary(ctx, out, set.Each), set.Free())
}

// integerDictionary writes the dictionary of integer ids, given in ascending order, unless nodes
// and ids are the same.
func (p *pipeline) integerDictionary(ctx context.Context, out *idsResult,
	each func(fn func(id uint64) error) error) error {
	if out.Nodes == 0 {
		return p.errEmpty()
	}
	if out.Dense && p.permutation(out.Nodes) == nil {
		return nil
	}
	out.Kind = kv.IDsInteger
	return p.writeDictionary(ctx, out, false, func(add func(external []byte) error) error {
		var text []byte
		return each(func(id uint64) error {
			text = strconv.AppendUint(text[:0], id, 10)
			return add(text)
		})
	})
}

// writeDictionary writes the dictionary of the ids that each gives in order of their numbers.
func (p *pipeline) writeDictionary(ctx context.Context, out *idsResult, joins bool,
	each func(add func(external []byte) error) error) error {
	opt := steps.DictionaryOptions{Seed: out.Seed, Hash: p.hash, Types: p.info.NodeTypes,
		Integer: p.integers()}
	if p.into == nil { // the new nodes of a level come in order
		opt.Perm = p.permutation(out.Nodes)
	}
	d, err := steps.NewDictionary(p.Work, opt)
	if err != nil {
		return err
	}
	err = each(func(external []byte) error { return d.Add(ctx, external) })
	if err == nil {
		var r *steps.DictionaryResult
		if r, err = d.Finish(ctx, joins); err == nil {
			out.Files, out.Types, out.Dict = append(out.Files, r.Files...), r.Types,
				append(out.Dict, r.Joins...)
		}
	}
	return errors.Join(err, d.Close())
}

// numberWide numbers integers by rank, by sorting.
func (p *pipeline) numberWide(ctx context.Context, s *scanResult, out *idsResult) error {
	each := p.eachWide(ctx, s)
	top := uint64(0)
	err := each(func(id uint64) error {
		out.Nodes, top = out.Nodes+1, id
		return nil
	})
	if err == nil {
		err = p.writeWide(out, each)
	}
	if err != nil {
		return err
	}
	out.Kind = kv.IDsDense
	out.Dense = out.Nodes > 0 && top == out.Nodes-1
	p.DropRuns(s.IDs)
	return p.integerDictionary(ctx, out, each)
}

// eachWide returns what streams the distinct ids of sorted ones.
func (p *pipeline) eachWide(ctx context.Context, s *scanResult) func(func(id uint64) error) error {
	opt := p.Sorter("ids", 1, p.Memory.Merge)
	return func(fn func(id uint64) error) error {
		last, any := uint64(0), false
		return extsort.Merge(ctx, opt, s.IDs, func(ids []uint64) error {
			for _, id := range ids {
				if any && id == last {
					continue
				}
				last, any = id, true
				if err := fn(id); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// writeWide writes the run of integer ids and their nodes that edges are joined with.
func (p *pipeline) writeWide(out *idsResult, each func(func(id uint64) error) error) error {
	perm, number := p.permutation(out.Nodes), uint64(0)
	run, err := p.WriteRun("dict", func(w *extsort.RunWriter) error {
		return each(func(id uint64) error {
			node := number
			if perm != nil {
				node = perm.At(node)
			}
			number++
			return w.Add(extsort.Entry{Key: id, Aux: node})
		})
	})
	out.Dict = []extsort.Run{run}
	return err
}

// numberText numbers text ids in order of first appearance.
func (p *pipeline) numberText(ctx context.Context, s *scanResult, out *idsResult) error {
	out.Kind = kv.IDsString
	order, err := s.IDs, error(nil)
	if s.Mode == idTable {
		out.Nodes = order[0].Records
	} else if order, err = p.orderByPlace(ctx, s, out); err != nil {
		return err
	}
	if out.Nodes > 0 {
		check := p.checkPlaces(s)
		err = p.writeDictionary(ctx, out, true, func(add func(external []byte) error) error {
			return steps.EachEntry(ctx, p.Sorter("place", 0, p.Memory.Merge), order,
				func(e extsort.Entry) error {
					if err := check(ctx, &e); err != nil {
						return err
					}
					return add(e.Text)
				})
		})
	}
	p.DropRuns(s.IDs)
	if p.typeRanges(out); err == nil && out.Nodes == 0 {
		err = p.errEmpty()
	}
	return err
}

// orderByPlace sorts the distinct ids by their first appearance.
func (p *pipeline) orderByPlace(ctx context.Context, s *scanResult, out *idsResult) (
	[]extsort.Run, error) {
	opt := p.Sorter("ids", 0, p.Memory.Merge)
	opt.Distinct = true
	last := uint64(0)
	to := p.Sorter("place", 0, p.Memory.Strings)
	return extsort.SortEntries(to, func(byPlace *extsort.Strings) error {
		return steps.EachEntry(ctx, opt, s.IDs, func(e extsort.Entry) error {
			if out.Nodes > 0 && e.Key == last {
				return steps.ErrCollision
			}
			last = e.Key
			out.Nodes++
			return byPlace.Add(extsort.Entry{Key: e.Aux, Text: e.Text})
		})
	})
}
