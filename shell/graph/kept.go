package graph

import (
	"sync"

	"gdb/internal/mem"
)

// Kept holds what statements have made of the store and others may need, such as lists in memory.
// It is counted in the budget, and given back when the budget is short and no statement uses it.
type Kept struct {
	budget *mem.Budget
	mu     sync.Mutex
	of     map[string]*kept
	end    func()
}

// kept is a thing, or one that is being made.
type kept struct {
	once sync.Once
	val  any
	err  error
	held mem.Account
	uses int
}

// keptWhat is what things are called where memory is short.
const keptWhat = "lists and columns that statements keep"

func newKept(b *mem.Budget) *Kept {
	k := &Kept{budget: b, of: map[string]*kept{}}
	k.end = b.Relieve(k.give)
	return k
}

// Use returns the thing of a name, which build makes if it is not there; grow counts its memory.
// Release must follow, also after an error.
func (k *Kept) Use(name string, build func(grow func(int64) error) (any, error)) (any, error) {
	k.mu.Lock()
	t := k.of[name]
	if t == nil {
		t = &kept{held: mem.NewAccount(k.budget, keptWhat)}
		k.of[name] = t
	}
	t.uses++
	k.mu.Unlock()
	t.once.Do(func() { t.val, t.err = build(t.held.Add) })
	return t.val, t.err
}

// Has reports whether the thing of a name is there, or is being made.
func (k *Kept) Has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[name] != nil
}

// Unused returns the memory of what no statement uses.
func (k *Kept) Unused() (bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.of {
		if t.uses == 0 {
			bytes += t.held.Bytes()
		}
	}
	return bytes
}

// Release says that a statement has ended its use of a thing. One that could not be made is
// forgotten.
func (k *Kept) Release(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.of[name]
	if t.uses--; t.uses == 0 && t.err != nil {
		t.held.Release()
		delete(k.of, name)
	}
}

// give gives back what no statement uses.
func (k *Kept) give(int64) (given bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, t := range k.of {
		if t.uses == 0 {
			t.held.Release()
			delete(k.of, name)
			given = true
		}
	}
	return given
}

// Close gives everything back.
func (k *Kept) Close() {
	k.end()
	k.give(0)
}
