package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"gdb/internal/mem"
)

// FuzzReceive: any bytes are frames, errors or the end of the connection, within the memory, and
// frames that are sent again are the same.
func FuzzReceive(f *testing.F) {
	f.Add(append(header(2, 3, KindQuery), "{}abc"...))
	f.Add(append(header(0, 0, KindBye), header(bodyMax+1, 0, KindBye)...))
	f.Add(append(header(1<<16, 1<<20, KindNames), "[1"...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return // they fit in the socket
		}
		from, to := pair(t)
		if _, err := from.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := from.Close(); err != nil {
			t.Fatal(err)
		}
		budget, c, rest := mem.NewBudget(128<<10), NewConn(to), b
		for {
			got, err := c.Receive(counts(budget))
			if err != nil {
				break
			}
			body, data, err := lengths([headerBytes]byte(rest[:headerBytes]))
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[headerBytes:]
			if got.Refused == nil && (!bytes.Equal(got.Body, rest[:body]) ||
				!bytes.Equal(got.Data, rest[body:body+data])) {
				t.Fatalf("%+v came of %x", got, b)
			}
			rest = rest[body+data:]
			got.Free()
		}
		if budget.Used() != 0 {
			t.Fatalf("%d bytes are still counted", budget.Used())
		}
	})
}

// FuzzDecode: any body is decoded or an error; what was decoded is the same after a round trip.
func FuzzDecode(f *testing.F) {
	kinds := []any{Hello{}, Open{}, Start{}, Next{}, Sample{}, Edges{}, Neighbors{}, Query{},
		Names{}}
	for i, text := range []string{`{"protocol":3}`, `{"split":"train","fanout":[5,-1],"world":1}`,
		`{"epoch":18446744073709551615,"done":[1]}`, `{"done":[4294967295]}`, `{"index":1e3}`,
		`{"split":"test","count":1}`, `{"fanout":-1}`, `{"statement":"\u2028"}`,
		`{"names":[null]}`} {
		f.Add(uint8(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		of := reflect.TypeOf(kinds[int(kind)%len(kinds)])
		first, again := reflect.New(of).Interface(), reflect.New(of).Interface()
		if err := (&Frame{Body: body}).Decode(first); err != nil {
			return
		}
		text, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		err = (&Frame{Body: text}).Decode(again)
		if err != nil || !reflect.DeepEqual(first, again) {
			t.Fatalf("%v: %+v became %+v", err, first, again)
		}
	})
}
