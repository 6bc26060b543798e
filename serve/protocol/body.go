package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"

	"gdb/internal/mem"
)

// Text is a JSON body that is written piece by piece and counted in Budget as it grows. The zero
// value with a budget is an empty body.
type Text struct {
	Budget *mem.Budget
	buf    []byte
	first  bool // whether the list still has no element
}

// JSON returns what was written. It is valid until Free.
func (t *Text) JSON() json.RawMessage { return t.buf }

// Free gives the memory back.
func (t *Text) Free() {
	if cap(t.buf) > 0 {
		t.Budget.Release(int64(cap(t.buf)))
	}
	t.buf = nil
}

// Write adds bytes. It fails if the budget has no memory for them.
func (t *Text) Write(p []byte) (int, error) {
	if need := len(t.buf) + len(p); need > cap(t.buf) {
		if err := checkSizes(KindNamed, int64(need), 0); err != nil {
			return 0, err
		}
		size := max(need, 2*cap(t.buf), smallBytes)
		if err := t.Budget.Reserve("an answer", int64(size)); err != nil {
			return 0, fmt.Errorf("%w, or ask for less at a time", err)
		}
		next := append(make([]byte, 0, size), t.buf...)
		t.Free()
		t.buf = next
	}
	t.buf = append(t.buf, p...)
	return len(p), nil
}

// listEnd closes a list and the object whose last field the list is.
const listEnd = "]}"

// BeginList writes an object whose last field is an empty list. Add then adds elements to that
// list.
func (t *Text) BeginList(of any) error {
	text, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("protocol: encode a list: %w", err)
	}
	t.first = true
	_, err = t.Write(bytes.TrimSuffix(text, []byte(listEnd)))
	return err
}

// Add adds an element to the list.
func (t *Text) Add(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("protocol: encode a list: %w", err)
	}
	if !t.first {
		if _, err := t.Write([]byte(",")); err != nil {
			return err
		}
	}
	t.first = false
	_, err = t.Write(text)
	return err
}

// EndList ends the list and its object.
func (t *Text) EndList() error {
	_, err := t.Write([]byte(listEnd))
	return err
}
