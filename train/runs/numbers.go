package runs

import (
	"reflect"
	"slices"
	"strings"
)

// Numbers returns the names of the numbers in a record, for which curves can be drawn, in
// alphabetical order. It leaves out the number of the epoch, and what was not measured.
func (e *Epoch) Numbers() (names []string) {
	e.each(func(name string, _ float64) { names = append(names, name) })
	slices.Sort(names)
	return names
}

// Number returns the number of a name that Numbers returns.
func (e *Epoch) Number(name string) (v float64, ok bool) {
	e.each(func(have string, x float64) {
		if have == name {
			v, ok = x, true
		}
	})
	return v, ok
}

// each calls fn with the numbers under their JSON names, and leaves out what JSON does.
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
