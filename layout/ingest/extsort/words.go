package extsort

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"gdb/internal/bug"
	"gdb/internal/mem"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// WordsMax is the largest width of a record, in words.
const WordsMax = 5

// Options configure a sorter.
type Options struct {
	FS vfs.FS
	// Dir is where the runs are, and Prefix begins their names: PREFIX-0.run, PREFIX-1.run, ….
	// Runs are known by their names, so that the directory may be moved between two steps.
	Dir    string
	Prefix string
	// Width is the number of words in a record, 1..WordsMax. Strings ignores it.
	Width int
	// Key is the number of leading words to sort by; 0 is all of them.
	Key int
	// Memory is the size of the arena, in bytes.
	Memory int64
	Budget *mem.Budget
	// Distinct keeps only the first of the entries with one key and text. Words ignores it.
	Distinct bool
	// BlockBytes is the size of a run's blocks. Default 256 KiB.
	BlockBytes int
}

func (o *Options) path(name string) string { return o.FS.PathJoin(o.Dir, name) }

// Remove removes the file of a run.
func (o *Options) Remove(run Run) error {
	if err := o.FS.Remove(o.path(run.Name)); err != nil {
		return fmt.Errorf("extsort: remove %s: %w", o.path(run.Name), err)
	}
	return nil
}

func (o *Options) ensureDefaults() {
	if o.BlockBytes == 0 {
		o.BlockBytes = defaultBlockBytes
	}
	if o.Key == 0 {
		o.Key = o.Width
	}
}

// Words sorts records of Width uint64. A third of the arena is filled while another third is
// sorted, with the last as scratch, and spilled by a goroutine of its own. It may be used from one
// goroutine at a time.
type Words struct {
	opt      Options
	arena    *mem.Arena
	fill     []uint64
	n        int           // words in fill
	free     chan []uint64 // the arena's other third, when no spill is under way
	scratch  []uint64
	spilling chan struct{} // closed when the spill under way is done
	runs     []Run
	err      error // of a spill; read after spilling is closed
}

// NewWords starts a sorter.
func NewWords(opt Options) (*Words, error) {
	opt.ensureDefaults()
	if opt.Width < 1 || opt.Width > WordsMax {
		panic("BUG: extsort: width out of range")
	}
	third := opt.Memory / 3 / 8 / int64(opt.Width) * int64(opt.Width)
	third = min(third, int64(opt.Width)<<31) // positions are 32 bits wide
	if third <= 0 {
		return nil, fmt.Errorf("extsort: %d bytes are too few to sort in", opt.Memory)
	}
	arena, err := mem.NewArena(opt.Budget, "sorting", 3*8*third)
	if err != nil {
		return nil, err
	}
	w := mem.View[uint64](arena.Bytes())
	s := &Words{opt: opt, arena: arena, fill: w[:third], scratch: w[2*third : 3*third],
		free: make(chan []uint64, 1), spilling: make(chan struct{})}
	s.free <- w[third : 2*third]
	close(s.spilling)
	return s, nil
}

// Add appends records; len(words) is a multiple of the width.
func (s *Words) Add(words []uint64) error {
	for len(words) > 0 {
		n := copy(s.fill[s.n:], words)
		words = words[n:]
		if s.n += n; s.n == len(s.fill) {
			if err := s.spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// spill hands the filled third to a goroutine that sorts and writes it, and goes on with another.
func (s *Words) spill() error {
	<-s.spilling
	if s.err != nil {
		return s.err
	}
	full, next := s.fill[:s.n], <-s.free
	name := fmt.Sprintf("%s-%d.run", s.opt.Prefix, len(s.runs))
	s.runs = append(s.runs, Run{Name: name})
	at, done := len(s.runs)-1, make(chan struct{})
	s.spilling = done
	go func() {
		defer bug.Catch()
		defer close(done)
		words := s.sorted(full)
		run, err := WriteRun(s.opt, name, func(w *RunWriter) error {
			return w.words(words, s.opt.Width)
		})
		s.runs[at], s.err = run, err
		s.free <- full[:cap(full)]
	}()
	s.fill, s.n = next[:len(s.scratch)], 0
	return nil
}

func (s *Words) sorted(words []uint64) []uint64 {
	switch s.opt.Width {
	case 1:
		return flat(radixSort(shaped[[1]uint64](words), shaped[[1]uint64](s.scratch), s.opt.Key))
	case 2:
		return flat(radixSort(shaped[[2]uint64](words), shaped[[2]uint64](s.scratch), s.opt.Key))
	case 3:
		return flat(radixSort(shaped[[3]uint64](words), shaped[[3]uint64](s.scratch), s.opt.Key))
	case 4:
		return flat(radixSort(shaped[[4]uint64](words), shaped[[4]uint64](s.scratch), s.opt.Key))
	}
	return flat(radixSort(shaped[[5]uint64](words), shaped[[5]uint64](s.scratch), s.opt.Key))
}

// WriteWords writes words as they are to a run, which Merge can read back.
func WriteWords(opt Options, name string, words []uint64) (Run, error) {
	return WriteRun(opt, name, func(w *RunWriter) error { return w.words(words, 1) })
}

// SortWords sorts the records that fill adds, and returns their runs, which are durable.
func SortWords(opt Options, fill func(s *Words) error) ([]Run, error) {
	return sortWith(NewWords, opt, fill)
}

// sortWith lets fill add to a new sorter, and finishes it.
func sortWith[S interface {
	Finish() ([]Run, error)
	Abort() error
}](newSorter func(Options) (S, error), opt Options, fill func(s S) error) ([]Run, error) {
	s, err := newSorter(opt)
	if err != nil {
		return nil, err
	}
	if err := fill(s); err != nil {
		return nil, errors.Join(err, s.Abort())
	}
	return s.Finish()
}

// Finish spills what is left, frees the arena and returns the runs, which are durable.
func (s *Words) Finish() ([]Run, error) {
	if s.n > 0 {
		if err := s.spill(); err != nil {
			return nil, errors.Join(err, s.Abort())
		}
	}
	<-s.spilling
	return s.runs, errors.Join(s.err, s.arena.Free())
}

// Abort waits for the spill under way and frees the arena; the runs stay for the caller to
// remove. After Finish it does nothing.
func (s *Words) Abort() error {
	<-s.spilling
	return s.arena.Free()
}

// shaped sees words as records, without copying.
func shaped[R record](words []uint64) []R {
	var zero R
	n := len(words) / len(zero)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*R)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// flat sees records as words, without copying.
func flat[R record](recs []R) []uint64 {
	var zero R
	if len(recs) == 0 {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(recs))), len(recs)*len(zero))
}

// record is a run of words that sorts by its first word, then by the second, ….
type record interface {
	[1]uint64 | [2]uint64 | [3]uint64 | [4]uint64 | [5]uint64
}

// digitBits is the width of a radix digit: 2048 counters fit in the L1 cache, and two digits
// cover the node ids of a graph of four million nodes.
const digitBits = 11

// radixSort sorts a by its first key words and returns the sorted records, which are in a or in
// scratch. The first word mostly decides: records that are equal in it follow each other once it is
// sorted by, and are put in order among themselves. key is 1 or all words, so that what is equal in
// all of them is the same. Bits that are equal in all records cost nothing. Time: one pass per 11
// bits of the first word that vary, and O(n log n) for n records that are equal in it.
func radixSort[R record](a, scratch []R, key int) []R {
	if isSorted(a, key) {
		return a
	}
	a, scratch = sortWord(a, scratch[:len(a)], 0)
	for first := 0; key > 1 && first < len(a); {
		end := first + 1
		for end < len(a) && a[end][0] == a[first][0] {
			end++
		}
		if end > first+1 {
			sortTies(a[first:end], scratch[first:end], key)
		}
		first = end
	}
	return a
}

// tiesMost is how many records that are equal in the first word are compared with each other: a
// pass of many by a digit is cheaper.
const tiesMost = 1 << 12

// sortTies sorts records that are equal in the first word, in place.
func sortTies[R record](a, scratch []R, key int) {
	if len(a) <= tiesMost {
		slices.SortFunc(a, func(x, y R) int {
			for k := 1; k < key; k++ {
				if x[k] != y[k] {
					return cmp.Compare(x[k], y[k])
				}
			}
			return 0
		})
		return
	}
	sorted := a
	for word := key - 1; word > 0; word-- {
		sorted, scratch = sortWord(sorted, scratch, word)
	}
	if &sorted[0] != &a[0] {
		copy(a, sorted)
	}
}

// SortGroup sorts records of width words that are equal in the first, in place.
func SortGroup(words []uint64, width int) {
	switch width {
	case 2:
		sortGroup(shaped[[2]uint64](words))
	case 3:
		sortGroup(shaped[[3]uint64](words))
	case 4:
		sortGroup(shaped[[4]uint64](words))
	case 5:
		sortGroup(shaped[[5]uint64](words))
	}
}

func sortGroup[R record](a []R) {
	var zero R
	var scratch []R
	if len(a) > tiesMost {
		scratch = make([]R, len(a))
	}
	sortTies(a, scratch, len(zero))
}

// sortWord sorts a by one word, keeping the order of those that are equal in it, and returns the
// sorted records, which are in a or in scratch, and the other of the two.
func sortWord[R record](a, scratch []R, word int) (sorted, other []R) {
	for vary := varying(a, word); vary != 0; {
		shift := bits.TrailingZeros64(vary)
		radixPass(a, scratch, word, shift)
		a, scratch = scratch, a
		vary &^= (1<<digitBits - 1) << shift
	}
	return a, scratch
}

// isSorted reports whether records come in order already, as rows of arrays do.
func isSorted[R record](a []R, key int) bool {
	for i := 1; i < len(a); i++ {
		for k := range key {
			if a[i-1][k] != a[i][k] {
				if a[i-1][k] > a[i][k] {
					return false
				}
				break
			}
		}
	}
	return true
}

// varying returns a one for every bit of a word that differs between records.
func varying[R record](a []R, word int) uint64 {
	any, all := uint64(0), ^uint64(0)
	for i := range a {
		w := a[i][word]
		any |= w
		all &= w
	}
	return any &^ all
}

func radixPass[R record](a, out []R, word, shift int) {
	var at [1 << digitBits]uint32
	for i := range a {
		at[a[i][word]>>shift&(1<<digitBits-1)]++
	}
	sum := uint32(0)
	for d, n := range at {
		at[d] = sum
		sum += n
	}
	for i := range a {
		d := a[i][word] >> shift & (1<<digitBits - 1)
		out[at[d]] = a[i]
		at[d]++
	}
}
