//go:build cuda && cgo && linux

package cuda

import (
	"slices"
	"sync"
	"unsafe"

	"gdb/internal/cuda"
)

// pageLocked are the ranges that are page-locked, for all devices of the process; users of a range
// are devices.
var pageLocked lockedMemory

// lockedMemory are ranges of the host's memory that are page-locked, each once, however many ask
// for it or a part of it. It is for any goroutine.
type lockedMemory struct {
	sync.Mutex
	all []lockedRange
}

type lockedRange struct {
	memory []byte
	at     uint64 // as the device of the list sees it
	users  int
}

// place returns where x begins in the range, -1 if it is not within it.
func (r *lockedRange) place(x []byte) int {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(r.memory)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(x)))
	if at < first || at+uintptr(len(x)) > first+uintptr(len(r.memory)) {
		return -1
	}
	return int(at - first)
}

// find returns the number of the range that has x, -1 for none.
func (l *lockedMemory) find(x []byte) int {
	return slices.IndexFunc(l.all, func(r lockedRange) bool { return r.place(x) >= 0 })
}

// lock locks the pages of memory outside Go's heap, for the device to read it at the address that
// is returned; unlock undoes that.
func (d *driver) lock(x []byte) (p uint64, err error) {
	d.locked.Lock()
	defer d.locked.Unlock()
	if i := d.locked.find(x); i >= 0 {
		r := &d.locked.all[i]
		r.users++
		return r.at + uint64(r.place(x)), nil
	}
	if p, err = pageLocked.lock(d, x); err == nil {
		d.locked.all = append(d.locked.all, lockedRange{memory: x, at: p, users: 1})
	}
	return p, err
}

// lock locks memory for a device, unless it is locked for another, and returns where it sees it.
func (l *lockedMemory) lock(d *driver, x []byte) (p uint64, err error) {
	l.Lock()
	defer l.Unlock()
	i := l.find(x)
	err = d.on(func() error {
		do := d.device.Register
		if i >= 0 {
			do = d.device.Registered
		}
		at, err := do(x)
		p = uint64(at)
		return err
	})
	switch {
	case err != nil:
	case i >= 0:
		l.all[i].users++
	default:
		l.all = append(l.all, lockedRange{memory: x, users: 1})
	}
	return p, err
}

// unlock undoes a lock: the last device unlocks the range.
func (l *lockedMemory) unlock(d *driver, x []byte) error {
	l.Lock()
	defer l.Unlock()
	i := l.find(x)
	if l.all[i].users--; l.all[i].users > 0 {
		return nil
	}
	memory := l.all[i].memory
	l.all = slices.Delete(l.all, i, i+1)
	return d.on(func() error { return d.device.Unregister(memory) })
}

func (d *driver) unlock(x []byte) error {
	d.locked.Lock()
	defer d.locked.Unlock()
	i := d.locked.find(x)
	if i < 0 {
		panic("BUG: memory is unlocked that is not locked")
	}
	r := &d.locked.all[i]
	if r.users--; r.users > 0 {
		return nil
	}
	memory := r.memory
	d.locked.all = slices.Delete(d.locked.all, i, i+1)
	return pageLocked.unlock(d, memory)
}

// seen returns where the device sees locked memory; 0 for none.
func (d *driver) seen(x []byte) uint64 {
	if len(x) == 0 {
		return 0
	}
	d.locked.Lock()
	defer d.locked.Unlock()
	i := d.locked.find(x)
	if i < 0 {
		panic("BUG: a device reads memory that is not locked")
	}
	r := &d.locked.all[i]
	return r.at + uint64(r.place(x))
}

// beside runs a kernel beside the operations, behind the copies so far and before the next
// operation.
func (d *driver) beside(name string, threads int, words ...cuda.Argument) error {
	return d.on(func() error {
		d.copying = true
		return d.launchOn(d.copies, name, blocksFor(threads), words)
	})
}
