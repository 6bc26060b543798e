package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"gdb/internal/message"

	"github.com/google/jsonschema-go/jsonschema"
)

// endpoint is something that can be asked. A limit of 0 stands for the usual one.
type endpoint struct {
	method, path string
	name         string // as a tool and in metrics
	about        string // a sentence
	bodyMost     int64  // bytes of a request
	timeMost     time.Duration
	atOnce       int // how many requests compute at a time, others wait; 0 for any number

	in, out *jsonschema.Schema
	// call answers a request. body is nil for GET.
	call func(ctx context.Context, r *request, body []byte) (any, error)
	// plain serves what is no JSON; nil for most.
	plain func(s *Service) http.Handler
}

// The limits of endpoints that name none.
const (
	bodyUsual = 1 << 20
	timeUsual = 10 * time.Second
)

// endpoints is the table of all that can be asked.
var endpoints []*endpoint

func init() { // a literal would be a cycle: the document tells of itself
	endpoints = []*endpoint{predictEndpoint(), scoreEndpoint(), nearestEndpoint(),
		neighborsEndpoint(), queryEndpoint(), infoEndpoint(), metricsEndpoint(), healthEndpoint(),
		openAPIEndpoint()}
	for _, e := range endpoints {
		if e.bodyMost == 0 {
			e.bodyMost = bodyUsual
		}
		if e.timeMost == 0 {
			e.timeMost = timeUsual
		}
	}
}

// request is one request while it is answered.
type request struct {
	*Service
	held int64 // bytes of requests
}

// take counts bytes until the request ends.
func (r *request) take(what string, n int64) error {
	if err := r.requests.Reserve(what, n); err != nil {
		return err
	}
	r.held += n
	return nil
}

// end gives back what the request has taken.
func (r *request) end() { r.requests.Release(r.held) }

// typed fills in what follows of the types of a request and its answer.
func typed[In, Out any](e endpoint,
	answer func(ctx context.Context, r *request, in *In) (*Out, error)) *endpoint {
	e.in, e.out = schemaOf[In](), schemaOf[Out]()
	e.call = func(ctx context.Context, r *request, body []byte) (any, error) {
		in := new(In)
		if e.method == http.MethodPost {
			if err := r.take("a request", decodedShare*int64(len(body))); err != nil {
				return nil, err
			}
			if err := decode(body, in); err != nil {
				return nil, err
			}
		}
		return answer(ctx, r, in)
	}
	return &e
}

// decodedShare bounds what a request takes when it is decoded: short ids are 16 bytes and the text
// for 4 bytes of JSON, and slices grow by doubling.
const decodedShare = 12

// schemaOf returns the JSON schema of a type.
func schemaOf[T any]() *jsonschema.Schema {
	ids := &jsonschema.Schema{Types: []string{"string", "integer"}}
	s, err := jsonschema.For[T](&jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[id]():             ids,
			reflect.TypeFor[edgeLists[id]]():  edgeListsSchema(ids),
			reflect.TypeFor[edgeLists[int]](): edgeListsSchema(&jsonschema.Schema{Type: "integer"}),
		}})
	if err != nil {
		panic(fmt.Sprintf("BUG: web: schema: %v", err))
	}
	return s
}

// id is the id of a node as its source has it: text, or an integer.
type id string

// UnmarshalJSON reads text or an integer.
func (i *id) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(i))
	}
	if len(bytes.Trim(b, "-0123456789")) > 0 {
		return wrong("ids", string(b[:min(len(b), 40)])+" is no id", "give text or an integer")
	}
	*i = id(b)
	return nil
}

// Table is the answer of a statement.
type Table struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows" jsonschema:"text, numbers or null"`
	Notes   []string `json:"notes,omitempty" jsonschema:"what the rows do not show"`
}

// rowsMost bounds how many rows an endpoint is asked for.
const rowsMost = 10_000

// statement runs a statement and returns its rows.
func (r *request) statement(ctx context.Context, text string, params map[string]any) (*Table,
	error) {
	res, err := r.db.Query(ctx, text, params)
	if err != nil {
		return nil, err
	}
	out := &Table{Rows: res.Rows}
	bytes := int64(0)
	for _, row := range res.Rows {
		for i, cell := range row {
			switch v := cell.(type) {
			case float64:
				if v-v != 0 {
					row[i] = nil // JSON has no such number
				}
			case string:
				bytes += 2 * int64(len(v))
			}
			bytes += cellBytes
		}
	}
	for _, c := range res.Columns {
		out.Columns = append(out.Columns, c.Name)
	}
	for _, note := range res.Notes {
		out.Notes = append(out.Notes, message.Plain(note))
	}
	if out.Rows == nil {
		out.Rows = [][]any{}
	}
	return out, r.take("an answer", bytes)
}

// cellBytes is what a cell takes in an answer and as JSON, beside its text.
const cellBytes = 64

// limitOf returns a limit of rows that a request names, or the usual one.
func limitOf(where string, n, usual int) (int, error) {
	switch {
	case n == 0:
		return usual, nil
	case n < 0 || n > rowsMost:
		return 0, wrong(where, fmt.Sprintf("%d", n), fmt.Sprintf("want 1 to %d", rowsMost))
	}
	return n, nil
}
