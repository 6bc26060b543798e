package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// newDecoder returns a decoder of requests.
func newDecoder(b []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	d.UseNumber()
	return d
}

// decode reads a JSON object. Fields that the type does not have are refused.
func decode(body []byte, to any) error {
	d := newDecoder(body)
	err := d.Decode(to)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF):
		return syntaxFailure(body, d.InputOffset(), err)
	case errors.Is(err, io.EOF):
		return wrong("body", "it is empty", "send a JSON object")
	case err != nil:
		return decodeFailure("", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return wrong(fmt.Sprintf("body, byte %d", d.InputOffset()), "something follows the object",
			"send one JSON object")
	}
	return nil
}

// decodeFailure returns what is wrong with JSON that is no request; where is the place of what was
// decoded, "" for the whole body.
func decodeFailure(where string, err error) error {
	var f *failure
	var kind *json.UnmarshalTypeError
	at := func(in string) string { return strings.Trim(where+"."+in, ".") }
	switch {
	case errors.As(err, &f):
		in := *f
		in.Where = at(f.Where)
		return &in
	case errors.As(err, &kind):
		return wrong(at(kind.Field), "a JSON "+kind.Value+" stands where "+kind.Type.String()+
			" is wanted", "see GET /openapi.json")
	}
	return wrong(at(""), strings.TrimPrefix(err.Error(), "json: "),
		"send a JSON object; see GET /openapi.json")
}

// syntaxFailure returns what is wrong with a body that is no JSON.
func syntaxFailure(body []byte, offset int64, err error) error {
	where := fmt.Sprintf("body, byte %d", offset)
	place, rest := placeOfError(body)
	if place != "" {
		where += ", " + place
	}
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			return wrong(where, word+" is no number of JSON",
				"leave it out where there is no value")
		}
	}
	return wrong(where, err.Error(), "send a JSON object; see GET /openapi.json")
}

// placeOfError returns the place in a body where its JSON ends to be JSON, as nodes[0].columns.age,
// and what stands there.
func placeOfError(body []byte) (place string, rest []byte) {
	type level struct {
		object bool
		key    string // of an object; "" before it is read
		values int    // that were read
	}
	var at []level
	d := newDecoder(body)
	for {
		t, err := d.Token()
		if err != nil {
			break
		}
		if open := t == json.Delim('{') || t == json.Delim('['); open {
			at = append(at, level{object: t == json.Delim('{')})
			continue
		}
		if t == json.Delim('}') || t == json.Delim(']') {
			at = at[:len(at)-1]
		} else if top := len(at) - 1; top >= 0 && at[top].object && at[top].key == "" {
			at[top].key, _ = t.(string)
			continue
		}
		if top := len(at) - 1; top >= 0 {
			at[top].key = ""
			at[top].values++
		}
	}
	const most = 8 // levels that are told
	for _, l := range at[:min(len(at), most)] {
		switch {
		case !l.object:
			place += fmt.Sprintf("[%d]", l.values)
		case l.key != "":
			place += "." + shortened(l.key)
		}
	}
	return strings.Trim(place, "."), bytes.TrimLeft(body[d.InputOffset():], " \t\r\n:,")
}
