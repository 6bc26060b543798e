package catalog

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gdb/kv"
)

// Records are JSON, for anyone to read. Two things that JSON cannot say are kept all the same:
//
//   - Strings that are not UTF-8, such as class names of an old file: encoding/json would put
//     U+FFFD in place of such bytes, and two names would become one. A byte b that is not UTF-8 is
//     written as the private rune escapeRune+b; and so is each byte of such a rune itself.
//   - Metrics that are not finite: number.
const escapeRune = 0x10FF00

var timeType = reflect.TypeFor[time.Time]()

// marshal encodes a record.
func marshal(v any) ([]byte, error) {
	b, err := json.Marshal(mapStrings(reflect.ValueOf(v), escape).Interface())
	if err != nil {
		return nil, fmt.Errorf("kv: encode record: %w", err)
	}
	return b, nil
}

// unmarshal decodes a record into v, a pointer.
func unmarshal(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return err
	}
	p := reflect.ValueOf(v).Elem()
	p.Set(mapStrings(p, unescape))
	return nil
}

// mapStrings returns a copy of v with f applied to all strings; nil slices and pointers stay nil.
func mapStrings(v reflect.Value, f func(string) string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.String:
		out.SetString(f(v.String()))
	case v.Kind() == reflect.Struct && v.Type() != timeType:
		for i := range v.NumField() {
			out.Field(i).Set(mapStrings(v.Field(i), f))
		}
	case v.Kind() == reflect.Slice && !v.IsNil():
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(mapStrings(v.Index(i), f))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(mapStrings(v.Elem(), f))
	default:
		return v
	}
	return out
}

// escape makes any string valid UTF-8, reversibly.
func escape(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, isEscape) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || isEscape(r) {
			for i := range n {
				b.WriteRune(escapeRune + rune(s[i]))
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func unescape(s string) string {
	if !strings.ContainsFunc(s, isEscape) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isEscape(r) {
			b.WriteByte(byte(r - escapeRune))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isEscape(r rune) bool { return r >= escapeRune && r <= escapeRune+0xFF }

// number is a float64 that JSON holds as a string if it is NaN or infinite.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendQuote(nil, strconv.FormatFloat(v, 'g', -1, 64)), nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*n = number(v)
	return err
}

// runRecord is a RunMeta as the catalog keeps it. Its own Best and Test hide the embedded ones, so
// that they may be NaN or infinite.
type runRecord struct {
	kv.RunMeta
	Best, Test number
}
