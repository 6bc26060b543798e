package mem

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Shared is an arena that other processes can map. It has a descriptor but no name, so nothing is
// left of it once all who have it are gone. Its size is fixed: on Linux, holders of the
// descriptor can neither grow nor shrink it.
type Shared struct {
	*Arena
	fd int
}

// NewShared makes a shared arena of size bytes for what, and counts it in budget, which may be nil.
// The caller calls Free.
func NewShared(budget *Budget, what string, size int64) (*Shared, error) {
	if budget == nil {
		budget = &Budget{}
	}
	if size < 0 || size > arenaBytesMax {
		return nil, fmt.Errorf("mem: an arena of %d bytes for %s", size, what)
	}
	n := max((size+4095)&^4095, 4096)
	if err := budget.reserveArena(what, n); err != nil {
		return nil, err
	}
	fd, err := sharedFile(n)
	if err != nil {
		budget.releaseArena(n)
		return nil, fmt.Errorf("mem: share %s for %s: %w", FormatSize(n), what, err)
	}
	m, err := unix.Mmap(fd, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		budget.releaseArena(n)
		err = fmt.Errorf("mem: map %s for %s: %w", FormatSize(n), what, err)
		return nil, errors.Join(err, unix.Close(fd))
	}
	if n >= HugePageBytes {
		adviseHuge(m)
	}
	return &Shared{Arena: &Arena{mem: m, size: int(size), budget: budget}, fd: fd}, nil
}

// Descriptor returns the descriptor by which other processes map the arena: a file of the arena's
// bytes in whole pages. Free closes it.
func (s *Shared) Descriptor() int { return s.fd }

// Empty frees the pages of the arena, also for those who have mapped it elsewhere. What it held is
// lost. It is for memory that was lent, and that others may keep mapped for a while.
func (s *Shared) Empty() error { return emptyShared(s.mem) }

// Free unmaps the arena here. Others who have mapped it keep it. Further calls do nothing.
func (s *Shared) Free() error {
	if s.fd < 0 {
		return nil
	}
	fd := s.fd
	s.fd = -1
	return errors.Join(s.Arena.Free(), unix.Close(fd))
}
