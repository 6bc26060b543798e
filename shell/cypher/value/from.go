package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
)

// FromJSON returns the value that a text of JSON has: numbers without a point and an exponent are
// int64, others float64.
func FromJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the value")
	}
	return FromGo(v)
}

// FromGo returns a value of Go as one of statements: nil, true and false, numbers, text, and slices
// and maps of these with keys of text. Others, and whole numbers past int64, are an error.
func FromGo(v any) (any, error) {
	if n, ok := v.(json.Number); ok {
		if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
			return i, nil
		}
		return n.Float64()
	}
	r := reflect.ValueOf(v)
	switch {
	case v == nil:
		return nil, nil
	case r.Kind() == reflect.Bool:
		return r.Bool(), nil
	case r.Kind() == reflect.String:
		return r.String(), nil
	case r.CanInt():
		return r.Int(), nil
	case r.CanUint() && r.Uint() <= math.MaxInt64:
		return int64(r.Uint()), nil
	case r.CanFloat():
		return r.Float(), nil
	case r.Kind() == reflect.Slice || r.Kind() == reflect.Array:
		return listOf(r)
	case r.Kind() == reflect.Map && r.Type().Key().Kind() == reflect.String:
		return mapOf(r)
	}
	return nil, fmt.Errorf("a value of type %T is no parameter: want true, a number, text, a list "+
		"or a map of these, or null", v)
}

func listOf(r reflect.Value) (any, error) {
	out := make(List, r.Len())
	for i := range out {
		var err error
		if out[i], err = FromGo(r.Index(i).Interface()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func mapOf(r reflect.Value) (any, error) {
	out := make(Map, r.Len())
	for _, key := range r.MapKeys() {
		v, err := FromGo(r.MapIndex(key).Interface())
		if err != nil {
			return nil, err
		}
		out[key.String()] = v
	}
	return out, nil
}
