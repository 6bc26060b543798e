package mem

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestShared: what is written through one mapping is read through another, nobody can resize it,
// and it is counted as long as it is there.
func TestShared(t *testing.T) {
	budget := NewBudget(64 << 10)
	s, err := NewShared(budget, "a batch", 5000)
	if err != nil {
		t.Fatal(err)
	}
	if budget.Used() != 8192 || len(s.Bytes()) != 5000 {
		t.Errorf("%d bytes counted for %d", budget.Used(), len(s.Bytes()))
	}
	other, err := unix.Mmap(s.Descriptor(), 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if s.Bytes()[4999] = 7; other[4999] != 7 {
		t.Error("the other mapping does not see what was written")
	}
	for _, n := range []int64{0, 4096, 16384} {
		if err := unix.Ftruncate(s.Descriptor(), n); err == nil {
			t.Errorf("it was made %d bytes long", n)
		}
	}
	if err := s.Empty(); err != nil || other[4999] != 0 || s.Bytes()[4999] != 0 {
		t.Errorf("%v, it holds %d and %d", err, other[4999], s.Bytes()[4999])
	}
	s.Bytes()[4999] = 7
	if err := errors.Join(s.Free(), s.Free()); err != nil || budget.Used() != 0 {
		t.Errorf("%v, %d bytes are still counted", err, budget.Used())
	}
	if other[4999] != 7 {
		t.Error("the other mapping ended with the arena")
	}
	if err := unix.Munmap(other); err != nil {
		t.Fatal(err)
	}
	var full *LimitError
	if _, err := NewShared(budget, "a batch", 1<<20); !errors.As(err, &full) {
		t.Errorf("more than the budget: %v", err)
	}
}

// TestUnlinkedFile: the file that other systems than Linux share in place of memory has its size at
// once, no name, and zeros that two mappings share.
func TestUnlinkedFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	fd, err := unlinkedFile(8192)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files with a name: %v, %v", left, err)
	}
	var maps [2][]byte
	for i := range maps {
		if maps[i], err = unix.Mmap(fd, 0, 8192, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_SHARED); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := unix.Munmap(maps[i]); err != nil {
				t.Error(err)
			}
		}()
	}
	if maps[0][8191] = 7; maps[1][8191] != 7 || maps[1][0] != 0 {
		t.Errorf("the other mapping has %d and %d", maps[1][8191], maps[1][0])
	}
}
