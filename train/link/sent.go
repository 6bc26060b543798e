package link

import (
	"gdb/compute/backend"
	"gdb/internal/mem"
)

// sentRows are rows of entities, and the state of the optimizer, that go to a device for a step and
// back, since the partitions that have them are in the host's memory: each once, by their number.
type sentRows struct {
	values [][]float32 // and state, on the host
	there  Table       // the same on the device
	at     []uint32    // of each place of the list its number among them
	all    []uint32    // 0, 1, …
}

// sends reports whether a device computes with rows that it does not keep.
func (s *bySide) sends() bool {
	return s.be.Device() != nil && s.enc == nil && s.table.device == nil
}

// sendRows sends the rows of a step, and returns them in the order of its list.
func (s *bySide) sendRows() backend.Tensor {
	sent, dim, numbers := &s.sent, s.cfg.Dim, s.rows.Numbers
	sent.there = Table{Rows: len(numbers), Dim: dim}
	host := s.table.host()
	sent.values = mem.Resized(sent.values, len(host))
	for k, from := range host {
		x := mem.Resized(sent.values[k], len(numbers)*dim)
		s.each(len(numbers), func(i int) {
			copy(x[i*dim:][:dim], from[int(numbers[i])*dim:][:dim])
		})
		sent.values[k] = x
		to := s.be.Scratch(len(numbers), dim)
		backend.Copy(s.be, to, s.be.Host(x, len(numbers), dim))
		sent.there.device = append(sent.there.device, to)
	}
	sent.at, sent.all = mem.Resized(sent.at, len(s.list)), mem.Resized(sent.all, len(numbers))
	for i := range numbers {
		sent.all[i] = uint32(i)
		for _, place := range s.rows.At[s.rows.Off[i]:s.rows.Off[i+1]] {
			sent.at[place] = uint32(i)
		}
	}
	return s.readRows(&sent.there, sent.at)
}

// takeRows changes the rows of the step on the device, and takes them back.
func (s *bySide) takeRows(o *optimizer) error {
	sent, dim, numbers := &s.sent, s.cfg.Dim, s.rows.Numbers
	o.onBackend(s.be, &sent.there, s.now.dEntities, backend.Words(s.be, sent.all))
	for k, x := range sent.there.device {
		s.be.Read(sent.values[k], x)
	}
	if err := s.be.Err(); err != nil {
		return err
	}
	for k, to := range s.table.host() {
		s.each(len(numbers), func(i int) {
			copy(to[int(numbers[i])*dim:][:dim], sent.values[k][i*dim:][:dim])
		})
	}
	return nil
}
