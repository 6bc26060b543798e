package mem

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
)

const (
	// programBytes is what the process holds besides arenas and Go's heap: resident code and its
	// data. 26 MiB were measured.
	programBytes = 32 << 20
	// heapBase is the part of the heap that nothing counts: Go's runtime, stacks, catalog
	// transactions, small things.
	heapBase = 24 << 20
	// heapSlack says how much is added to counted heap for garbage, one part in heapSlack: the
	// collector runs as often as needed to stay within.
	heapSlack = 4 // a quarter
	// ProcessBytes is the least memory of a process that NewProcessBudget bounds.
	ProcessBytes = programBytes + heapBase
)

// Budget counts the bytes in use against a limit: arenas, and what its users reserve on Go's heap.
// The zero value has no limit. All methods may be called from any goroutine.
type Budget struct {
	process bool    // heap counts at its peak, with garbage; see NewProcessBudget
	whole   *Budget // in which all is counted too; nil for none

	mu struct {
		sync.Mutex
		limit          int64
		arenas, heap   int64
		heapPeak, peak int64
		relief         []*relief
	}
}

// relief is a function that can give memory back.
type relief struct{ give func(n int64) bool }

// NewBudget returns a budget of limit bytes; 0 means without limit.
func NewBudget(limit int64) *Budget {
	b := &Budget{}
	b.mu.limit = limit
	return b
}

// Part returns a budget of limit bytes of this one: what it counts is counted in both.
func (b *Budget) Part(limit int64) *Budget {
	part := NewBudget(limit)
	part.whole = b
	return part
}

// Close counts what is still reserved on the heap in a part no longer, also in the whole: its owner
// is done. Arenas are counted until they are freed.
func (b *Budget) Close() error {
	b.mu.Lock()
	left := b.mu.heap
	b.mu.Unlock()
	b.Release(left)
	return nil
}

// NewProcessBudget returns a budget that bounds a whole process to memory bytes: its arenas, its Go
// heap with garbage, and the program itself. Heap once taken stays counted until CollectHeap, since
// Go gives it back late. If Govern was called, the limit of Go's collector follows what is counted,
// so that heap and arenas together stay within the bound.
func NewProcessBudget(memory int64) *Budget {
	b := &Budget{process: true}
	b.Bound(memory)
	b.setCollector(0)
	return b
}

// Bound changes the limit to limit bytes or, of a budget of a process, to bytes of the process.
// What is counted already stays so, even if it is more.
func (b *Budget) Bound(limit int64) {
	if b.process {
		limit = max(1, limit-ProcessBytes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.limit = limit
}

// governed is set if the process belongs to this program alone.
var governed struct {
	sync.Mutex
	yes bool
}

// Govern lets budgets of a whole process set the limit of Go's collector. It must not be called in
// a process of which they are only a part.
func Govern() {
	governed.Lock()
	defer governed.Unlock()
	governed.yes = true
}

// setCollector sets the limit of Go's collector for this much counted heap.
func (b *Budget) setCollector(charged int64) {
	governed.Lock()
	defer governed.Unlock()
	if governed.yes {
		debug.SetMemoryLimit(heapBase + charged)
	}
}

// LimitError says that a reservation does not fit in the budget. Want, Used and Limit are bytes.
type LimitError struct {
	What              string
	Want, Used, Limit int64
}

// Error names the part, what it needs and how much is in use.
func (e *LimitError) Error() string {
	return fmt.Sprintf("mem: %s needs %s; %s of %s are in use: raise --memory",
		e.What, FormatSize(e.Want), FormatSize(e.Used), FormatSize(e.Limit))
}

// HeapCost returns what n bytes on Go's heap take of the bound of a process.
func HeapCost(n int64) int64 { return n + n/heapSlack }

// HeapGarbage returns how much of n bytes of the bound of a process is for garbage; the rest may be
// reserved for heap.
func HeapGarbage(n int64) int64 { return (n + heapSlack) / (heapSlack + 1) }

// Reserve counts n bytes on Go's heap for what, or returns a LimitError and counts nothing.
func (b *Budget) Reserve(what string, n int64) error {
	if err := b.ask(what, n, b.takeHeap); err != nil || b.whole == nil {
		return err
	}
	err := b.whole.Reserve(what, n)
	if err != nil {
		b.give(&b.mu.heap, n)
	}
	return err
}

// reserveArena counts an arena.
func (b *Budget) reserveArena(what string, n int64) error {
	if err := b.ask(what, n, b.takeArena); err != nil || b.whole == nil {
		return err
	}
	err := b.whole.reserveArena(what, n)
	if err != nil {
		b.give(&b.mu.arenas, n)
	}
	return err
}

// ask takes n bytes. While they are short, it asks those who can give memory back.
func (b *Budget) ask(what string, n int64, take func(n int64) (short int64)) error {
	if n < 0 || n > (math.MaxInt64-b.Used())/2 {
		return &LimitError{What: what, Want: n, Used: b.Used(), Limit: b.Limit()}
	}
	short := take(n)
	for i := 0; short > 0; i++ {
		b.mu.Lock()
		if i >= len(b.mu.relief) {
			b.mu.Unlock()
			return &LimitError{What: what, Want: n, Used: b.Used(), Limit: b.Limit()}
		}
		r := b.mu.relief[i]
		b.mu.Unlock()
		if r.give(short) { // not locked: it releases what it gives
			short = take(n)
		}
	}
	return nil
}

// takeHeap counts n bytes of heap, or returns how many are short.
func (b *Budget) takeHeap(n int64) (short int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := max(b.mu.heapPeak, b.mu.heap+n)
	if !b.process {
		peak = b.mu.heap + n
	}
	if short := b.mu.arenas + b.charge(peak) - b.mu.limit; b.mu.limit > 0 && short > 0 {
		return short
	}
	b.mu.heap += n
	if peak > b.mu.heapPeak {
		b.mu.heapPeak = peak
		if b.process {
			b.setCollector(b.charge(peak))
		}
	}
	b.notePeakLocked()
	return 0
}

func (b *Budget) takeArena(n int64) (short int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if short := b.usedLocked() + n - b.mu.limit; b.mu.limit > 0 && short > 0 {
		return short
	}
	b.mu.arenas += n
	b.notePeakLocked()
	return 0
}

// charge returns what this much heap counts for.
func (b *Budget) charge(heap int64) int64 {
	if b.process {
		return HeapCost(heap)
	}
	return heap
}

func (b *Budget) usedLocked() int64 {
	if b.process {
		return b.mu.arenas + b.charge(b.mu.heapPeak)
	}
	return b.mu.arenas + b.mu.heap
}

func (b *Budget) notePeakLocked() { b.mu.peak = max(b.mu.peak, b.usedLocked()) }

// Release no longer counts n bytes that Reserve counted.
func (b *Budget) Release(n int64) {
	if b.give(&b.mu.heap, n); b.whole != nil {
		b.whole.Release(n)
	}
}

// give takes n bytes from one of the counters.
func (b *Budget) give(counter *int64, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*counter -= n
}

// CollectHeap ends a phase of work on the heap: its garbage is collected and given back to the
// system, and the heap counts for what is in use. It takes as long as a collection.
func (b *Budget) CollectHeap() {
	if b == nil || !b.process {
		return
	}
	governed.Lock()
	collect := governed.yes
	governed.Unlock()
	if collect {
		debug.FreeOSMemory()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.heapPeak = b.mu.heap
	b.setCollector(b.charge(b.mu.heapPeak))
}

func (b *Budget) releaseArena(n int64) {
	if b.give(&b.mu.arenas, n); b.whole != nil {
		b.whole.releaseArena(n)
	}
}

// Relieve registers a function that can give memory back: give is called when the budget is short
// of n bytes, and returns whether it gave any. It is called from the goroutine that is short, and
// must not reserve anything. end unregisters it.
func (b *Budget) Relieve(give func(n int64) bool) (end func()) { return b.relieve(give, false) }

// RelieveFirst does what Relieve does, for memory that nobody needs: it is asked for first.
func (b *Budget) RelieveFirst(give func(n int64) bool) (end func()) { return b.relieve(give, true) }

func (b *Budget) relieve(give func(n int64) bool, first bool) (end func()) {
	r := &relief{give}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := len(b.mu.relief)
	if first {
		at = 0
	}
	b.mu.relief = slices.Insert(b.mu.relief, at, r)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		var left []*relief
		for _, other := range b.mu.relief {
			if other != r {
				left = append(left, other)
			}
		}
		b.mu.relief = left
	}
}

// Used returns the number of bytes counted now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.usedLocked()
}

// Peak returns the largest number of bytes that was counted at any time.
func (b *Budget) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.peak
}

// Free returns how many bytes may still be reserved on the heap once its garbage is collected.
func (b *Budget) Free() int64 {
	if b == nil || b.Limit() == 0 {
		return math.MaxInt64 / 2
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.mu.limit - b.mu.arenas - b.charge(b.mu.heap)
	if b.process {
		left -= HeapGarbage(left)
	}
	return max(left, 0)
}

// Limit returns the bound in bytes, or 0 for none.
func (b *Budget) Limit() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.limit
}

// Account counts what one owner holds on Go's heap. The zero value counts in no budget. One
// goroutine may use it.
type Account struct {
	budget *Budget
	what   string
	bytes  int64
}

// NewAccount returns an account in a budget, which may be nil.
func NewAccount(budget *Budget, what string) Account { return Account{budget: budget, what: what} }

// AtLeast makes the account hold n bytes, unless it holds more.
func (a *Account) AtLeast(n int64) error {
	if n <= a.bytes || a.budget == nil {
		return nil
	}
	if err := a.budget.Reserve(a.what, n-a.bytes); err != nil {
		return err
	}
	a.bytes = n
	return nil
}

// Add makes the account hold n bytes more, or fewer if n is negative.
func (a *Account) Add(n int64) error {
	if a.budget != nil {
		if n < 0 {
			a.budget.Release(-n)
		} else if err := a.budget.Reserve(a.what, n); err != nil {
			return err
		}
	}
	a.bytes += n
	return nil
}

// Bytes returns what the account holds.
func (a *Account) Bytes() int64 { return a.bytes }

// Release empties the account.
func (a *Account) Release() {
	if a.budget != nil {
		a.budget.Release(a.bytes)
	}
	a.bytes = 0
}
