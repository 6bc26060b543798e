package runs

import (
	"reflect"
	"slices"
	"strings"
)

// Numbers are the names of the numbers that a record has, in alphabetical order, but for that of
// the epoch: what a curve can be drawn of. What was not measured is left out of a record.
func (e *Epoch) Numbers() (names []string) {
	e.each(func(name string, _ float64) { names = append(names, name) })
	slices.Sort(names)
	return names
}

// Number is one of them by name.
func (e *Epoch) Number(name string) (v float64, ok bool) {
	e.each(func(have string, x float64) {
		if have == name {
			v, ok = x, true
		}
	})
	return v, ok
}

// each calls fn with the numbers as JSON names them, and leaves out what JSON does.
func (e *Epoch) each(fn func(name string, v float64)) {
	record := reflect.ValueOf(e).Elem()
	for i := range record.NumField() {
		name, option, _ := strings.Cut(record.Type().Field(i).Tag.Get("json"), ",")
		v := record.Field(i)
		if name == "epoch" || option == "omitempty" && v.IsZero() {
			continue
		}
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		switch {
		case v.CanFloat():
			fn(name, v.Float())
		case v.CanInt():
			fn(name, float64(v.Int()))
		case v.CanUint():
			fn(name, float64(v.Uint()))
		}
	}
}
