package superbatch

import (
	"context"
	"errors"
	"fmt"
)

// spilled locates the rows of slots that are not kept, in a file, while other work uses their
// memory.
type spilled struct {
	id   identity
	refs []ref
}

// spillChunk is the size of a record of spilled rows, in bytes.
const spillChunk = 512 << 10

// spillBytes returns about how many bytes spilled rows take on disk.
func (c *Config) spillBytes(dim int) int64 {
	if c.Spill == nil {
		return 0
	}
	return 4 * int64(c.Slots-c.SlotsKept) * int64(dim)
}

// spill writes the rows of slots that are not kept to a file and gives their memory back, if
// Config.Spill wants that after the epoch that ends here.
func (l *Loader) spill() error {
	first, end := l.unkept()
	epoch := l.due/l.builder.perEpoch - 1
	if l.cfg.Spill == nil || l.trimmed || first == end || l.err != nil || !l.cfg.Spill(epoch) {
		return nil
	}
	s := &spilled{id: l.builder.identity(l.due)}
	if err := s.write(l.arena.Bytes()[first:end]); err != nil {
		return fmt.Errorf("superbatch: write the rows of slots between epochs: %w", err)
	}
	l.trimmed, l.spilled = true, s
	return l.arena.Discard(first, end)
}

func (s *spilled) write(rows []byte) (err error) {
	w, err := s.id.Create(kindSlots)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	for len(rows) > 0 {
		n := min(spillChunk, len(rows))
		at, err := w.Append(rows[:n])
		if err != nil {
			return err
		}
		s.refs, rows = append(s.refs, at), rows[n:]
	}
	return w.Finish()
}

// unspill reads spilled rows back to their slots and removes the file.
func (l *Loader) unspill(ctx context.Context) (err error) {
	if l.spilled == nil {
		return nil
	}
	first, end := l.unkept()
	if err := l.spilled.read(ctx, &l.cfg, l.arena.Bytes()[first:end]); err != nil {
		return fmt.Errorf("superbatch: read the rows of slots: %w", err)
	}
	id := l.spilled.id
	l.spilled = nil
	return id.Remove(kindSlots)
}

func (s *spilled) read(ctx context.Context, c *Config, rows []byte) (err error) {
	file, err := s.id.Open(ctx, c.Device, kindSlots)
	if err != nil {
		return err
	}
	buf := readBuffer{Budget: c.Budget}
	defer func() { err = errors.Join(err, buf.Free(), file.Close()) }()
	var records [packedChunk / spillChunk]record
	for refs := s.refs; len(refs) > 0; {
		n := min(len(records), len(refs))
		for i, at := range refs[:n] {
			records[i] = record{File: file, At: at}
		}
		payloads, err := buf.Read(ctx, records[:n]...)
		if err != nil {
			return err
		}
		for _, p := range payloads {
			rows = rows[copy(rows, p):]
		}
		refs = refs[n:]
	}
	return nil
}
