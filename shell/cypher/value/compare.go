package value

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"gdb/shell/cypher/temporal"
)

// Tri is true, false or null.
type Tri int8

// The values of three-valued logic.
const (
	False Tri = iota
	True
	Null
)

// Of returns a boolean as Tri.
func Of(b bool) Tri {
	if b {
		return True
	}
	return False
}

// Not returns the opposite; null stays null.
func (t Tri) Not() Tri {
	switch t {
	case True:
		return False
	case False:
		return True
	}
	return Null
}

// Value returns a boolean, or nil for null.
func (t Tri) Value() any {
	if t == Null {
		return nil
	}
	return t == True
}

// Equal says whether two values are equal: null if one is null, or if lists or maps differ in
// nothing but what is null in them.
func Equal(a, b any) Tri {
	if a == nil || b == nil {
		return Null
	}
	switch a := a.(type) {
	case List:
		if b, ok := b.(List); ok {
			return equalLists(a, b)
		}
		return False
	case Map:
		if b, ok := b.(Map); ok {
			return equalMaps(a, b)
		}
		return False
	case int64, float64:
		if !isNumber(b) || isNaN(a) || isNaN(b) {
			return False
		}
		return Of(compareNumbers(a, b) == 0)
	}
	return Of(rank(a) == rank(b) && Order(a, b) == 0)
}

func equalLists(a, b List) Tri {
	if len(a) != len(b) {
		return False
	}
	out := True
	for i := range a {
		switch Equal(a[i], b[i]) {
		case False:
			return False
		case Null:
			out = Null
		}
	}
	return out
}

func equalMaps(a, b Map) Tri {
	if len(a) != len(b) {
		return False
	}
	out := True
	for k, v := range a {
		w, ok := b[k]
		if !ok {
			return False
		}
		switch Equal(v, w) {
		case False:
			return False
		case Null:
			out = Null
		}
	}
	return out
}

func isNaN(v any) bool {
	f, ok := v.(float64)
	return ok && math.IsNaN(f)
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

// Compare returns the sign of a - b for < and >. It is not ok, so that the comparison is null, for
// values of different types and those without an order. NaN compares with numbers, and is neither
// less nor greater: unordered says so.
func Compare(a, b any) (sign int, unordered, ok bool) {
	if a == nil || b == nil {
		return 0, false, false
	}
	if isNumber(a) && isNumber(b) {
		if isNaN(a) || isNaN(b) {
			return 0, true, true
		}
		return compareNumbers(a, b), false, true
	}
	if rank(a) != rank(b) {
		return 0, false, false
	}
	switch a := a.(type) {
	case string, bool:
		return Order(a, b), false, true
	case Temporal:
		s, ok := temporal.Compare(a, b.(Temporal))
		return s, false, ok
	case List:
		return compareLists(a, b.(List))
	}
	return 0, false, false
}

func compareLists(a, b List) (sign int, unordered, ok bool) {
	for i := range min(len(a), len(b)) {
		if Equal(a[i], b[i]) == True {
			continue
		}
		return Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b)), false, true
}

// compareNumbers compares numbers that are not NaN, without loss.
func compareNumbers(a, b any) int {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
		return -compareFloat(b.(float64), a)
	case float64:
		if b, ok := b.(int64); ok {
			return compareFloat(a, b)
		}
		return cmp.Compare(a, b.(float64))
	}
	return 0
}

// compareFloat compares a float with an integer, which a float may not be able to hold.
func compareFloat(f float64, n int64) int {
	switch {
	case f >= 1<<63:
		return 1
	case f < -1<<63:
		return -1
	}
	whole := math.Trunc(f)
	if c := cmp.Compare(int64(whole), n); c != 0 {
		return c
	}
	return cmp.Compare(f, whole)
}

// rank is the place of the type of a value in the order of all values.
func rank(v any) int {
	switch v := v.(type) {
	case Map:
		return 0
	case Node:
		return 1
	case Rel:
		return 2
	case List:
		return 3
	case Path:
		return 4
	case Temporal:
		return 5 + slices.Index(temporalOrder, v.Kind())
	case string:
		return 20
	case bool:
		return 21
	case int64, float64:
		return 22
	}
	return 23
}

// temporalOrder are the kinds of temporal values in the order of all values.
var temporalOrder = []string{temporal.KindDateTime, temporal.KindLocalDateTime, temporal.KindDate,
	temporal.KindTime, temporal.KindLocalTime, temporal.KindDuration}

// Order returns the sign of a - b in the total order of all values, by which ORDER BY sorts: by
// type, then by value. NaN is the greatest number, and null is greater than all.
func Order(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case int64, float64:
		switch {
		case isNaN(a) || isNaN(b):
			return cmp.Compare(asInt(isNaN(a)), asInt(isNaN(b)))
		}
		return compareNumbers(a, b)
	case string:
		return strings.Compare(a, b.(string))
	case bool:
		return cmp.Compare(asInt(a), asInt(b.(bool)))
	case List:
		return slices.CompareFunc(a, b.(List), Order)
	case Map:
		return orderMaps(a, b.(Map))
	case Node:
		return cmp.Compare(a.ID, b.(Node).ID)
	case Rel:
		return orderRels(a, b.(Rel))
	case Path:
		return orderPaths(a, b.(Path))
	case Temporal:
		return temporal.Order(a, b.(Temporal))
	}
	return 0
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func orderMaps(a, b Map) int {
	ka, kb := slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))
	if c := slices.Compare(ka, kb); c != 0 {
		return c
	}
	for _, k := range ka {
		if c := Order(a[k], b[k]); c != 0 {
			return c
		}
	}
	return 0
}

func orderRels(a, b Rel) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
		strings.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
}

func orderPaths(a, b Path) int {
	for i := range min(len(a.Nodes), len(b.Nodes)) {
		if c := cmp.Compare(a.Nodes[i].ID, b.Nodes[i].ID); c != 0 {
			return c
		}
		if i < min(len(a.Rels), len(b.Rels)) {
			if c := orderRels(a.Rels[i], b.Rels[i]); c != 0 {
				return c
			}
		}
	}
	return cmp.Compare(len(a.Rels), len(b.Rels))
}
