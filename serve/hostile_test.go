package serve

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"gdb/internal/mem"
	"gdb/serve/protocol"
)

// hostileSeed is the seed of what hostile clients send.
const hostileSeed = 17

// dial connects without a word.
func (r *running) dial(t testing.TB) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkServes opens a loader and takes an epoch: the server lives and does its work.
func (r *running) checkServes(t *testing.T) {
	t.Helper()
	k := r.connect(t)
	defer k.close()
	opened := k.open(protocol.Open{Fanout: []int{5, 3}, Batch: 20, Seed: 1})
	k.start(0, 0)
	for range opened.Batches {
		b, err := k.next()
		if err != nil || b == nil {
			t.Fatalf("no batch after hostile clients: %v", err)
		}
		k.give(b)
	}
	k.must(protocol.KindRows, nil, mem.BytesOf([]uint32{1, 2}), protocol.KindArrays)
}

// frame is a frame as bytes, with lengths that may be wrong.
func frame(body, data uint32, kind uint16, rest ...byte) []byte {
	head := binary.LittleEndian.AppendUint32(nil, body)
	head = binary.LittleEndian.AppendUint32(head, data)
	head = binary.LittleEndian.AppendUint16(head, kind)
	return append(append(head, 0, 0), rest...)
}

// TestClientsThatGoAway: clients of another version, clients that leave before or after any word,
// and clients that leave in the middle of a frame end no server.
func TestClientsThatGoAway(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	hello, err := json.Marshal(protocol.Hello{Protocol: protocol.Version + 1})
	if err != nil {
		t.Fatal(err)
	}
	other := frame(uint32(len(hello)), 0, uint16(protocol.KindHello), hello...)
	said := [][]byte{nil, other, append(other[:len(other):len(other)], other...), other[:7],
		other[:len(other)-1], frame(0, 0, uint16(protocol.KindBye)),
		frame(0, 0, uint16(protocol.KindStats)), frame(0, 0, uint16(protocol.KindNext))}
	for i := range 6000 {
		c := r.dial(t)
		if i%3 == 0 { // it has read the welcome, else it is gone before that was sent
			_, err := c.Read(make([]byte, 1))
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Write(said[i%len(said)]); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.checkServes(t)
}

// bodies are JSON of the right and of wrong shapes for requests of any kind.
var bodies = []string{"", "{}", "null", "[]", "1", `"x"`, "{", `{"done":`, `{"done":[1,2,3]}`,
	`{"done":[-1]}`, `{"done":"x"}`, `{"protocol":3}`, `{"protocol":"3"}`, `{"epoch":-1}`,
	`{"epoch":18446744073709551615,"first":18446744073709551615}`,
	`{"split":"train","fanout":[5],"batch":1,"world":1}`,
	`{"split":"train","fanout":[5,5],"batch":9223372036854775807,"world":1}`,
	`{"split":"train","fanout":[9223372036854775807],"batch":10,"world":1}`,
	`{"split":"train","fanout":[-1,-1,-1,-1,-1,-1,-1,-1,-1],"batch":1,"world":1}`,
	`{"split":"train","fanout":[1],"batch":1,"world":1024,"rank":1023}`,
	`{"split":"train","fanout":[1],"batch":1,"world":1,"memory":9223372036854775807}`,
	`{"split":"\u0000","first":18446744073709551615,"count":18446744073709551615}`,
	`{"split":"../..","first":0,"count":1}`, `{"fanout":-1}`, `{"fanout":9223372036854775807}`,
	`{"statement":""}`, `{"statement":"NEIGHBORS #1 HOPS 99"}`, `{"statement":"\u0000\ufffd"}`,
	`{"names":["1","1",""]}`, `{"names":null}`, `{"names":[null]}`}

// TestMalformedFrames: frames of every kind with bodies and data that fit and that do not, lengths
// that lie, and bytes without any sense. Each is answered or ends its own connection alone.
func TestMalformedFrames(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	random := rand.New(rand.NewPCG(hostileSeed, 0))
	for round := range 400 {
		c := r.dial(t)
		go func() { _, _ = io.Copy(io.Discard, c) }() // ends with the connection
		for range 1 + random.IntN(8) {
			if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, err := c.Write(malformed(random))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("round %d of seed %d: the server hangs", round, hostileSeed)
			}
			if err != nil {
				break // the server has ended this connection
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.checkServes(t)
}

// malformed is a frame of any kind, or something that is none.
func malformed(random *rand.Rand) []byte {
	body, data := bodies[random.IntN(len(bodies))], make([]byte, random.IntN(64))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	if random.IntN(2) == 0 { // nodes that are there
		data = mem.BytesOf([]uint32{1, 2, 3, 2000})
	}
	switch rest := append([]byte(body), data...); random.IntN(8) {
	case 0:
		return data
	case 1: // lengths that lie
		return frame(random.Uint32(), random.Uint32()>>random.IntN(32), uint16(random.IntN(32)),
			rest...)
	default:
		return frame(uint32(len(body)), uint32(len(data)), uint16(random.IntN(32)), rest...)
	}
}

// TestStopsBesideStuckClient: a server that is interrupted ends though a client takes no answers.
func TestStopsBesideStuckClient(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	k := r.connect(t)
	nodes := make([]uint32, 500) // their features fill the socket
	if err := protocol.NewConn(k.c).Send(protocol.KindRows, nil, mem.BytesOf(nodes)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.c.Read(make([]byte, 1)); err != nil { // the answer is under way
		t.Fatal(err)
	}
	r.stop()
	select {
	case err := <-r.done:
		r.done <- err
	case <-time.After(time.Minute):
		t.Fatal("the server waits for a client that takes no answers")
	}
}
