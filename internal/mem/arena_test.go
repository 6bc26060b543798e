package mem

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

func TestBudget(t *testing.T) {
	b := NewBudget(100)
	if err := b.Reserve("first", 60); err != nil {
		t.Fatal(err)
	}
	err := b.Reserve("second", 41)
	var limit *LimitError
	if !errors.As(err, &limit) || *limit != (LimitError{"second", 41, 60, 100}) {
		t.Fatalf("41 of 40 bytes: %v", err)
	}
	for _, part := range []string{"second", "41 B", "60 B", "100 B", "--memory"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if err := b.Reserve("second", 40); err != nil {
		t.Errorf("40 of 40 bytes after a failed reservation: %v", err)
	}
	b.Release(60)
	if b.Used() != 40 || b.Peak() != 100 || b.Limit() != 100 {
		t.Errorf("used %d, peak %d, limit %d", b.Used(), b.Peak(), b.Limit())
	}
	if err := new(Budget).Reserve("any", math.MaxInt64/2); err != nil {
		t.Errorf("a budget without limit: %v", err)
	}
}

// TestBudgetConcurrent: many reserve at once, and the limit is never passed.
func TestBudgetConcurrent(t *testing.T) {
	const limit, size = 1000, 7
	b := NewBudget(limit)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				if err := b.Reserve("part", size); err == nil {
					b.Release(size)
				}
			}
		})
	}
	wg.Wait()
	if b.Used() != 0 || b.Peak() > limit || b.Peak() < size {
		t.Errorf("used %d, peak %d of %d", b.Used(), b.Peak(), limit)
	}
}

func TestArena(t *testing.T) {
	for _, size := range []int64{0, 1, 4096, 4097, 1 << 20, 2<<20 - 1, 2 << 20, 5<<20 + 3} {
		b := NewBudget(0)
		a, err := NewArena(b, "test", size)
		if err != nil {
			t.Fatal(err)
		}
		p := a.Bytes()
		if int64(len(p)) != size || cap(p) != len(p) {
			t.Errorf("size %d: %d bytes of capacity %d", size, len(p), cap(p))
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(p))); at%4096 != 0 {
			t.Errorf("size %d: begins at %#x", size, at)
		}
		for i := range p {
			if p[i] != 0 {
				t.Fatalf("size %d: byte %d is %d", size, i, p[i])
			}
			p[i] = 0xff
		}
		if b.Used() < max(size, 4096) || b.Used() > size+2<<20 {
			t.Errorf("size %d: %d bytes are counted", size, b.Used())
		}
		for range 2 {
			if err := a.Free(); err != nil {
				t.Errorf("size %d: free: %v", size, err)
			}
		}
		if b.Used() != 0 {
			t.Errorf("size %d: %d bytes are counted after Free", size, b.Used())
		}
	}
}

func TestArenaRefused(t *testing.T) {
	b := NewBudget(1 << 20)
	var limit *LimitError
	if _, err := NewArena(b, "cache", 1<<20+1); !errors.As(err, &limit) || limit.What != "cache" {
		t.Errorf("an arena over the budget: %v", err)
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are counted", b.Used())
	}
	for _, size := range []int64{1 << 60, math.MaxInt64, -1, -1 << 40} {
		if a, err := NewArena(b, "all", size); err == nil {
			t.Errorf("an arena of %d bytes was mapped: %d", size, len(a.Bytes()))
		}
	}
	if _, err := NewArena(nil, "all", 1<<60); err == nil {
		t.Error("an arena of 1 EiB was mapped")
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are counted after failures", b.Used())
	}
}

func TestViews(t *testing.T) {
	s := []uint32{0x04030201, 0x08070605}
	b := BytesOf(s)
	if string(b) != "\x01\x02\x03\x04\x05\x06\x07\x08" {
		t.Errorf("bytes %x", b)
	}
	b[0] = 9
	if s[0] != 0x04030209 {
		t.Error("BytesOf has copied")
	}
	if v := View[uint32](b); len(v) != 2 || v[1] != s[1] {
		t.Errorf("view %x", v)
	}
	if v := View[uint64](b); len(v) != 1 || v[0] != 0x0807060504030209 {
		t.Errorf("view %x", v)
	}
	if v := View[uint32](b[:7]); len(v) != 1 {
		t.Errorf("a view of 7 bytes has %d numbers", len(v))
	}
	if View[float32](b[:3]) != nil || View[uint8](nil) != nil || BytesOf([]int64{}) != nil {
		t.Error("views of nothing are not nil")
	}
}

// TestPopulate: bytes that are written while the arena gets its memory stay, the others are zeros,
// and it can be stopped at any time.
func TestPopulate(t *testing.T) {
	for range 20 {
		a, err := NewArena(nil, "test", 40<<20)
		if err != nil {
			t.Fatal(err)
		}
		stop, b := a.Populate(), a.Bytes()
		for i := len(b) - 4096; i >= 0; i -= 9 << 20 {
			b[i] = byte(i >> 20)
		}
		stop()
		for i := len(b) - 4096; i >= 0; i -= 9 << 20 {
			if b[i] != byte(i>>20) || b[i+1] != 0 {
				t.Fatalf("byte %d is %d, the next %d", i, b[i], b[i+1])
			}
		}
		stop()
		if err := a.Free(); err != nil {
			t.Fatal(err)
		}
	}
}
