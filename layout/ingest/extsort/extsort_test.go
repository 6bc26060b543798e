package extsort

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

func sortAll(t testing.TB, opt Options, words []uint64) []uint64 {
	s, err := NewWords(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(words); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	got := []uint64{}
	err = Merge(context.Background(), opt, runs, func(b []uint64) error {
		got = append(got, b...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWordsSortsLikeSlices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.IntRange(1, WordsMax).Draw(rt, "width")
		n := rapid.IntRange(0, 20000).Draw(rt, "records")
		mask := rapid.SampledFrom([]uint64{0, 1, 0xff, 0x3fffff, 0x3fffff003fffff,
			^uint64(0)}).Draw(rt, "mask")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		words := make([]uint64, n*width)
		for i := range words {
			words[i] = r.Uint64() & mask
		}
		opt := Options{FS: vfs.NewMem(), Prefix: "t", Width: width, BlockBytes: 4096,
			Memory: int64(rapid.SampledFrom([]int{4 << 10, 40 << 10, 1 << 20}).Draw(rt, "memory"))}
		got := sortAll(t, opt, words)
		want := slices.SortedFunc(slices.Chunk(words, width), slices.Compare)
		if !slices.Equal(got, slices.Concat(want...)) {
			rt.Fatalf("%d records of %d words come out wrong", n, width)
		}
	})
}

func TestKeyLeavesTheRestInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]uint64, 20000)
	for i := range words {
		words[i] = r.Uint64() >> 50
	}
	got := sortAll(t, Options{FS: vfs.NewMem(), Prefix: "t", Width: 2, Key: 1,
		Memory: 48 << 10, BlockBytes: 4096}, words)
	for i := 2; i < len(got); i += 2 {
		if got[i] < got[i-2] {
			t.Fatalf("record %d is before its predecessor", i/2)
		}
	}
	all := func(w []uint64) [][]uint64 {
		return slices.SortedFunc(slices.Chunk(w, 2), slices.Compare)
	}
	if !slices.EqualFunc(all(got), all(words), slices.Equal[[]uint64]) {
		t.Fatal("records were lost or changed")
	}
}

func TestStringsSortLikeSlices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 3000).Draw(rt, "entries")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		keys := rapid.SampledFrom([]uint64{1, 50, 1 << 62}).Draw(rt, "keys")
		long := rapid.SampledFrom([]int{1, 20, 6000}).Draw(rt, "longest")
		opt := Options{FS: vfs.NewMem(), Prefix: "t", BlockBytes: 4096, Memory: 64 << 10,
			Distinct: rapid.Bool().Draw(rt, "distinct")}
		s, err := NewStrings(opt)
		if err != nil {
			t.Fatal(err)
		}
		var want []Entry
		for range n {
			e := Entry{Key: r.Uint64N(keys), Aux: r.Uint64N(9),
				Text: make([]byte, r.IntN(long))}
			for i := range e.Text {
				e.Text[i] = 'a' + byte(r.IntN(3))
			}
			want = append(want, e)
			if err := s.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		runs, err := s.Finish()
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(want, func(a, b Entry) int { return a.compare(&b) })
		if opt.Distinct {
			want = slices.CompactFunc(want, func(a, b Entry) bool { return a.same(&b) })
		}
		opt.Memory = batches*batchWords*8 + 2*4096 // a fan-in of two: several levels
		e, err := OpenEntries(context.Background(), opt, runs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			got, ok, err := e.Next(context.Background())
			if err != nil || !ok || got.compare(&want[i]) != 0 {
				rt.Fatalf("entry %d: got %v %v %v, want %v", i, got, ok, err, want[i])
			}
		}
		if _, ok, err := e.Next(context.Background()); ok || err != nil {
			rt.Fatalf("after the last entry: %v %v", ok, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDamageIsAnError flips each of many bits of a run: the merge must fail or, never, deliver.
func TestDamageIsAnError(t *testing.T) {
	fs := vfs.NewMem()
	opt := Options{FS: fs, Prefix: "t", Width: 1, Memory: 1 << 20, BlockBytes: 4096}
	s, err := NewWords(opt)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 4000 {
		if err := s.Add([]uint64{r.Uint64()}); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	data, err := fs.UnsafeGetFileDataBuffer(runs[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	good := slices.Clone(data)
	for range 300 {
		bit := r.IntN(len(good) * 8)
		bad := slices.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		err := mergeBytes(t, opt, runs, bad)
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
	}
	if err := mergeBytes(t, opt, runs, good[:len(good)-9]); !errors.Is(err, ErrDamaged) {
		t.Fatalf("cut off: %v", err)
	}
	if err := mergeBytes(t, opt, runs, good); err != nil {
		t.Fatal(err)
	}
}

func mergeBytes(t *testing.T, opt Options, runs []Run, data []byte) error {
	f, err := opt.FS.Create(runs[0].Name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(slices.Clone(data)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return Merge(context.Background(), opt, runs, func([]uint64) error { return nil })
}

func TestMergeStops(t *testing.T) {
	opt := Options{FS: vfs.NewMem(), Prefix: "t", Width: 1, Memory: 1 << 20}
	s, err := NewWords(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(make([]uint64, 300_000)); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	err = Merge(context.Background(), opt, runs, func([]uint64) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of the function", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = Merge(ctx, opt, runs, func([]uint64) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func FuzzDecodeEntry(f *testing.F) {
	e := Entry{Key: 7, Text: []byte("node"), Aux: 9}
	f.Add(e.appendTo(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, n := decodeEntry(b)
		if n == 0 {
			return
		}
		if got := e.appendTo(nil); string(got) != string(b[:n]) {
			t.Fatalf("%x decodes and encodes to %x", b[:n], got)
		}
	})
}

func BenchmarkWords(b *testing.B) {
	const n = 4 << 20
	for width := 1; width <= 2; width++ {
		b.Run(fmt.Sprintf("width=%d", width), func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 4))
			words := make([]uint64, n*width)
			for i := range words {
				words[i] = r.Uint64()
				if width == 1 {
					words[i] &= 0x3fffff003fffff
				}
			}
			fs, dir := vfs.Default, b.TempDir()
			opt := Options{FS: fs, Prefix: dir + "/t", Width: width, Key: 1, Memory: 24 << 20}
			b.SetBytes(int64(8 * len(words)))
			for b.Loop() {
				s, err := NewWords(opt)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Add(words); err != nil {
					b.Fatal(err)
				}
				runs, err := s.Finish()
				if err != nil {
					b.Fatal(err)
				}
				sum := uint64(0)
				err = Merge(context.Background(), opt, runs, func(w []uint64) error {
					sum += w[0] + uint64(binary.Size(w[0]))
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}
