package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gdb/kv"

	"github.com/RoaringBitmap/roaring/v2"
)

// History loads what the catalog knows of snapshots, and who keeps them.
func (c *Catalog) History(ctx context.Context) (h *kv.History, err error) {
	err = c.view(ctx, func(r reader) (err error) {
		if h, err = r.history(); err != nil {
			return err
		}
		h.Runs, err = r.runs()
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// history loads all but the runs.
func (r reader) history() (h *kv.History, err error) {
	h = &kv.History{}
	if h.Head, err = r.meta(); err != nil {
		return nil, err
	}
	err = r.each(keySnapshot, func(name string, b []byte) error {
		s, err := r.snapshot(name, b)
		if err == nil && s.Number >= h.Head.Snapshot {
			err = kv.DamagedFile(r.c.rel(""), "snapshot %d is recorded as one before %d", s.Number,
				h.Head.Snapshot)
		}
		h.Snapshots = append(h.Snapshots, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = r.each(keyHold, func(name string, b []byte) error {
		hold, err := r.hold(name, b)
		h.Holds = append(h.Holds, hold)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// snapshot decodes the record of a snapshot.
func (r reader) snapshot(name string, b []byte) (s kv.SnapshotMeta, err error) {
	if err = unmarshal(b, &s); err == nil {
		err = s.Check()
	}
	if err == nil && name != string(binary.BigEndian.AppendUint64(nil, s.Number)) {
		err = fmt.Errorf("its number is %d", s.Number)
	}
	if err != nil {
		return s, kv.DamagedFile(r.c.rel(""), "record of snapshot %x: %v", name, err)
	}
	return s, nil
}

func (r reader) hold(name string, b []byte) (h kv.HoldMeta, err error) {
	if err = unmarshal(b, &h); err == nil && h.Name != name {
		err = fmt.Errorf("its name is %q", h.Name)
	}
	if err != nil {
		return h, kv.DamagedFile(r.c.rel(""), "name %q of a snapshot: %v", name, err)
	}
	return h, nil
}

// former returns the metadata of a snapshot that is not the last.
func (r reader) former(number uint64) (*kv.Meta, error) {
	h, err := r.history()
	if err != nil {
		return nil, err
	}
	m := h.On(number)
	if m == nil || m.Snapshot != number {
		return nil, fmt.Errorf("kv: %s: %w: number %d", r.c.dir, kv.ErrNoSnapshot, number)
	}
	return m, nil
}

// keepFormer writes the record of the snapshot that a commit replaces, and those of held ones, and
// names the sets of the new one so that both are kept.
func (w writer) keepFormer(was, m *kv.Meta, held []kv.SnapshotMeta,
	sets map[string]*roaring.Bitmap) error {
	if m.Committed.IsZero() || m.Committed.Equal(was.Committed) {
		m.Committed = time.Now().UTC().Truncate(time.Second)
	}
	for i := range m.Splits {
		s := &m.Splits[i]
		to, changed := sets[s.Name]
		if !changed {
			continue
		}
		before, err := w.set(s.StoredName())
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		former := to.Clone()
		if former.RemoveRange(was.Nodes, 1<<32); !former.Equals(before) {
			s.Set = fmt.Sprintf("%s#%d", s.Name, m.Snapshot)
		}
	}
	for _, s := range append([]kv.SnapshotMeta{was.Record()}, held...) {
		if s.Number == m.Snapshot {
			continue
		}
		if m.Rewrites > 0 && m.Rewrites == s.Number {
			s.Same = m.Snapshot
		}
		if err := w.putSnapshot(s); err != nil {
			return err
		}
	}
	return nil
}

func (w writer) putSnapshot(s kv.SnapshotMeta) error {
	b, err := marshal(s)
	if err != nil {
		return err
	}
	return w.put(snapshotKey(s.Number), b)
}

// Hold gives a snapshot a name, which keeps it. It fails if the name is given already.
func (c *Catalog) Hold(ctx context.Context, name string, number uint64) error {
	if err := checkName("snapshot", name); err != nil {
		return err
	}
	return c.update(ctx, func(w writer) error {
		h, err := w.history()
		if err != nil {
			return err
		}
		for _, hold := range h.Holds {
			if hold.Name == name {
				return fmt.Errorf("kv: the name %q keeps snapshot %d already", name, hold.Snapshot)
			}
		}
		b, err := marshal(kv.HoldMeta{Name: name, Snapshot: number,
			Created: time.Now().UTC().Truncate(time.Second)})
		if err != nil {
			return err
		}
		return w.put([]byte(keyHold+name), b)
	})
}

// Unhold takes a name of a snapshot away.
func (c *Catalog) Unhold(ctx context.Context, name string) error {
	return c.update(ctx, func(w writer) error {
		err := w.get([]byte(keyHold+name), func([]byte) error { return nil })
		if errors.Is(err, kv.ErrNotFound) {
			return fmt.Errorf("kv: name %q of a snapshot: %w", name, err)
		}
		if err != nil {
			return err
		}
		return w.remove([]byte(keyHold + name))
	})
}

// Forget takes away how the store was at some snapshots, except for their numbers, times and
// counts, with the sets that only these had. The last snapshot cannot be forgotten.
func (c *Catalog) Forget(ctx context.Context, numbers []uint64) error {
	return c.update(ctx, func(w writer) error {
		h, err := w.history()
		if err != nil {
			return err
		}
		gone, used := map[string]bool{}, map[string]bool{}
		note := func(m *kv.Meta, to map[string]bool) {
			for i := range m.Splits {
				to[m.Splits[i].StoredName()] = true
			}
		}
		note(h.Head, used)
		for _, s := range h.Snapshots {
			switch {
			case s.Meta == nil:
			case !slices.Contains(numbers, s.Number):
				note(s.Meta, used)
			default:
				note(s.Meta, gone)
				s.Meta = nil
				if err := w.putSnapshot(s); err != nil {
					return err
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(gone)) {
			if !used[name] {
				if err := w.dropSet(name); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
