package mem

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrNoSharing is the error of systems without memory that has a descriptor and no name.
var ErrNoSharing = errors.New("mem: this system cannot share memory without a file: Linux can")

// Shared is an arena that other processes can map: it has a descriptor and no name, so nothing of
// it is left once all who have it are gone. Its size is fixed: who has the descriptor can neither
// grow nor shrink it.
type Shared struct {
	*Arena
	fd int
}

// NewShared makes a shared arena of size bytes for what and counts it in budget, which may be nil.
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

// Descriptor is what other processes map the arena by: a file of the arena's bytes in whole pages.
// It is closed by Free.
func (s *Shared) Descriptor() int { return s.fd }

// Empty frees the pages of the arena, also of those who have mapped it elsewhere: what it held is
// lost. For memory that was lent and that others may keep mapped for a while.
func (s *Shared) Empty() error { return emptyShared(s.mem) }

// Free unmaps the arena here; who has mapped it elsewhere keeps it. Further calls do nothing.
func (s *Shared) Free() error {
	if s.fd < 0 {
		return nil
	}
	fd := s.fd
	s.fd = -1
	return errors.Join(s.Arena.Free(), unix.Close(fd))
}
