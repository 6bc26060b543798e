package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The graph of the tests.
const testNodes, testDim = 300, 6

// testGraph is a graph of which labels can be learned.
func testGraph() layouttest.Graph {
	return layouttest.Learnable(testNodes, testDim, 4, "ash", "birch", "fir")
}

// mustOpen opens a service for a store with a run.
func mustOpen(t *testing.T) *Service {
	t.Helper()
	st := layouttest.Build(t, vfs.NewMem(), "store", testGraph())
	dev := devtest.Open(t, blockdev.Options{})
	c := setting.Default()
	c.Fanout, c.Hidden, c.Batch, c.Epochs, c.Run = []int{3, 3}, 8, 50, 2, "first"
	c.Threads, c.Memory = 2, 1<<30
	if _, err := train.Run(t.Context(), st, dev, c, nil); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Store: st, Device: dev, Memory: 1 << 30, Threads: 2,
		Version: "test", Runs: []string{"first"},
		Notes: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if used := s.requests.Used(); used != 0 {
			t.Errorf("%d bytes of requests are not given back", used)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// mustServe serves a service until the test ends, and returns its address.
func mustServe(t *testing.T, s *Service, token string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- HTTP{Service: s, Token: token}.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-end; err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("the server ended with %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return l.Addr().String()
}

// post sends JSON and returns the status and the answer.
func post(t *testing.T, address, path, body string) (int, string) {
	t.Helper()
	r, err := http.Post("http://"+address+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, strings.TrimSpace(string(text))
}

// TestPredict: what HTTP answers is what the predictor answers, to the bit; a new node with the
// row and the list of a node of the store is predicted as that is.
func TestPredict(t *testing.T) {
	s := mustOpen(t)
	address := mustServe(t, s, "")
	g := testGraph()
	want, err := s.nodes[0].Predict(t.Context(), []layout.NodeID{7, 9}, false)
	if err != nil {
		t.Fatal(err)
	}
	var near []string
	for _, e := range g.Edges {
		if e.Dst == 7 {
			near = append(near, fmt.Sprintf("%q", fmt.Sprint(e.Src)))
		}
	}
	row, _ := json.Marshal(g.Features[7*testDim : 8*testDim])
	status, text := post(t, address, "/predict", fmt.Sprintf(`{"ids":[7,"9"],"probabilities":true,
		"nodes":[{"features":%s,"neighbors":[%s]}]}`, row, strings.Join(near, ",")))
	var got predictOut
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusOK {
		t.Fatal(status, text, err)
	}
	want = append(want, want[0])
	for i, id := range []string{"7", "9", ""} {
		p := got.Predictions[i]
		if p.ID != id || p.Prediction != want[i].Value ||
			fmt.Sprint(p.Probabilities) != fmt.Sprint(want[i].Probabilities) {
			t.Errorf("prediction %d is %v, want %v", i, p, want[i])
		}
	}
	if fmt.Sprint(got.Labels) != "[ash birch fir]" || got.Run != "first" {
		t.Errorf("labels %v of run %s", got.Labels, got.Run)
	}
}

// TestAnswers: endpoints answer, and say what is wrong, where and what to do.
func TestAnswers(t *testing.T) {
	address := mustServe(t, mustOpen(t), "")
	row := strings.TrimSuffix(strings.Repeat("0,", testDim), ",")
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/neighbors", `{"id":7,"limit":2}`, 200, `{"columns":["node","direction","neighbor"],`},
		{"/neighbors", `{"id":"7; DEGREES"}`, 404, `"what":"NEIGHBORS: id`},
		{"/neighbors", `{"id":7,"direction":"up"}`, 400, "want in, out or both"},
		{"/neighbors", `{"id":7,"limit":1000000}`, 400, "want 1 to 10000"},
		{"/query", `{"statement":"MATCH (a {id: $x})<--(b) RETURN count(b) AS n","params":{"x":7}}`,
			200, `{"columns":["n"],"rows":[[4]]}`},
		{"/query", `{"statement":"MATCH (a RETURN a"}`, 400, `"where":"statement, character`},
		{"/query", `{"statement":"CHECK"}`, 400, "does not begin with"},
		{"/nearest", `{"id":7}`, 404, "no run that predicts links is served"},
		{"/nearest", `{"id":7,"features":"features","top":2,"exact":true}`, 200,
			`{"columns":["node","cosine"],`},
		{"/nearest", `{"id":7,"features":"features","by":"dot","split":"train"}`, 200,
			`{"columns":["node","dot"],`},
		{"/nearest", `{"id":7,"features":"features","type":"user"}`, 422, "have no types"},
		{"/nearest", `{"id":7,"features":"features","run":"r"}`, 400, "name one of them"},
		{"/score", `{"head":7,"tail":8}`, 404, "serve one with --run"},
		{"/predict", `{"ids":[7],"run":"other"}`, 404, `run \"other\" is not served`},
		{"/predict", `{"ids":[70000]}`, 404, `"where":"ids[0]","do":"name a node as the source ` +
			`does, such as \"0\""`},
		{"/predict", `{"ids":[7.5]}`, 400, "7.5 is no id"},
		{"/predict", `{}`, 400, "no node is asked for"},
		{"/predict", `{"nodes":[{"features":[1]}]}`, 400, fmt.Sprintf("give %d", testDim)},
		{"/predict", `{"nodes":[{"features":[` + row + `],"new_neighbors":[1]}]}`, 400,
			"there is no new node 1"},
		{"/predict", `{"ids":[7]} 5`, 400, "something follows the object"},
		{"/predict", `{"ids":[7],"extra":1}`, 400, `unknown field \"extra\"`},
		{"/predict", `{"ids":` + strings.Repeat("[", 20000), 400, "body, byte"},
		{"/predict", `{"ids":["` + strings.Repeat("x", bodyUsual) + `"]}`, 413, "is longer than"},
		{"/nothing", `{}`, 404, "POST /predict"},
		{"/healthz", `{}`, 405, "send GET /healthz"},
	} {
		status, text := post(t, address, c.path, c.body)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %.80s: %d %s, want %d %s", c.path, c.body, status, text, c.status, c.want)
		}
		var f struct{ Error *failure }
		if err := json.Unmarshal([]byte(text), &f); status != 200 && (err != nil ||
			f.Error == nil || f.Error.What == "" || f.Error.Do == "") {
			t.Errorf("%s %.80s: %s is no error with what and do", c.path, c.body, text)
		}
	}
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`,
		"/info":         `"new_nodes":true`,
		"/openapi.json": `"operationId":"predict"`,
		"/metrics":      `gdb_http_requests_total{code="413",endpoint="predict"} 1`} {
		r, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		if r.Body.Close(); err != nil || !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s: %s, %v, want %s", path, text, err, want)
		}
	}
}

// TestWhoMayAsk: with a token only those who show it are answered, and without one only those who
// name this machine; a body that is no JSON, as pages of other sites can send it, is refused.
func TestWhoMayAsk(t *testing.T) {
	s := mustOpen(t)
	const token = "a token of some length"
	open, closed := mustServe(t, s, ""), mustServe(t, s, token)
	for i, c := range []struct {
		address, path, host, given, kind string
		want                             int
	}{
		{closed, "/info", "", "", "", 401},
		{closed, "/info", "", "Bearer wrong", "", 401},
		{closed, "/info", "", token, "", 401},
		{closed, "/info", "", "Bearer " + token, "", 200},
		{closed, "/info", "example.org", "Bearer " + token, "", 200},
		{closed, "/healthz", "", "", "", 200},
		{closed, "/metrics", "", "", "", 401},
		{open, "/info", "", "", "", 200},
		{open, "/info", "localhost:80", "", "", 200},
		{open, "/info", "[::1]:80", "", "", 200},
		{open, "/info", "example.org", "", "", 403},
		{open, "/predict", "", "", "text/plain", 415},
		{open, "/predict", "", "", "application/json; charset=utf-8", 200},
	} {
		method, body := http.MethodGet, ""
		if c.kind != "" {
			method, body = http.MethodPost, `{"ids":[1]}`
		}
		q, err := http.NewRequest(method, "http://"+c.address+c.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Host = c.host
		q.Header.Set("Content-Type", c.kind)
		if c.given != "" {
			q.Header.Set("Authorization", c.given)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if r.Body.Close(); r.StatusCode != c.want {
			t.Errorf("case %d, %s: %d, want %d", i, c.path, r.StatusCode, c.want)
		}
	}
	for address, want := range map[string]bool{"localhost:80": true, "127.0.0.1:80": true,
		"[::1]:80": true, ":80": false, "0.0.0.0:80": false, "example.org:80": false} {
		if IsLoopback(address) != want {
			t.Errorf("%s is of this machine alone: %v", address, !want)
		}
	}
}

// TestBatcher: requests that come together are computed together, each gets its own answers, and a
// wrong one harms no other.
func TestBatcher(t *testing.T) {
	begun, sizes := make(chan bool, 100), make(chan int, 100)
	hold := make(chan bool)
	b := startBatcher(func(_ context.Context, nodes []train.UnseenNode) ([]train.Prediction,
		error) {
		begun <- true
		<-hold
		sizes <- len(nodes)
		var out []train.Prediction
		for i, n := range nodes {
			if n.Features == nil {
				return nil, fmt.Errorf("node %d is wrong", i)
			}
		}
		for i, n := range nodes {
			for _, k := range n.Unseen {
				if nodes[k].Features[0] != n.Features[0] {
					return nil, fmt.Errorf("node %d names one of another request", i)
				}
			}
			out = append(out, train.Prediction{Value: n.Features[0]})
		}
		return out, nil
	})
	defer b.close()
	answers := make(chan error, 10)
	ask := func(v float32) {
		nodes := []train.UnseenNode{{Features: []float32{v}, Unseen: []int{1}},
			{Features: []float32{v}, Unseen: []int{0}}}
		if v < 0 {
			nodes[1].Features = nil
		}
		out, err := b.predict(context.Background(), nodes)
		if v < 0 && err == nil || v >= 0 && (err != nil || len(out) != 2 || out[0].Value != v ||
			out[1].Value != v) {
			answers <- fmt.Errorf("%v gets %v, %v", v, out, err)
			return
		}
		answers <- nil
	}
	go ask(1)
	<-begun // the next gather behind it
	for v := range 3 {
		go ask(float32(v - 1))
	}
	close(hold)
	for range 4 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if first := <-sizes; first != 2 {
		t.Errorf("the first batch has %d nodes", first)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.predict(gone, nil); err == nil {
		t.Error("a request that was given up is answered")
	}
}

// TestAbuse: clients that send nonsense, too much, or nothing harm no others, and all memory comes
// back.
func TestAbuse(t *testing.T) {
	s := mustOpen(t)
	address := mustServe(t, s, "")
	var slow []net.Conn
	defer func() {
		for _, c := range slow {
			_ = c.Close()
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for i := range 200 { // they announce a body and send a part of it
		c := dial()
		slow = append(slow, c)
		head := []string{"POST /pre", "POST /predict HTTP/1.1\r\nHost: localhost\r\n" +
			"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"ids\":["}[i%2]
		if _, err := c.Write([]byte(head)); err != nil {
			t.Fatal(err)
		}
	}
	draw := rng.NewStream(8)
	for range 500 {
		b := make([]byte, draw.Below(200))
		for i := range b {
			b[i] = byte(draw.Below(256))
		}
		if status, text := post(t, address, "/predict", string(b)); status != 400 {
			t.Fatalf("%q: %d %s", b, status, text)
		}
	}
	for range 20 { // a body of a GiB is refused before it is read
		c := dial()
		_, err := c.Write([]byte("POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"application/json\r\nContent-Length: 1073741824\r\n\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 20)
		if _, err := io.ReadFull(c, b); err != nil || !bytes.Contains(b, []byte("413")) {
			t.Errorf("a body of 1 GiB: %s, %v", b, err)
		}
		_ = c.Close()
	}
	if status, text := post(t, address, "/predict", `{"ids":[1]}`); status != 200 {
		t.Errorf("beside slow clients: %d %s", status, text)
	}
	for _, c := range slow {
		_ = c.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	for s.requests.Used() > 0 { // until the server sees that they are gone
		if t.Context().Err() != nil {
			t.Fatal("memory is not given back")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestConnectionsAreBounded: one connection too many is refused at once, and taken when there is
// room.
func TestConnectionsAreBounded(t *testing.T) {
	s := mustOpen(t)
	s.requests.Bound(2 * 3 * connectionBytes)
	address := mustServe(t, s, "")
	var open []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
		_, _ = c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, _ := io.ReadAll(c)
	if !bytes.HasPrefix(text, []byte("HTTP/1.1 503")) {
		t.Errorf("one connection too many gets %q", text)
	}
	_ = open[0].Close()
	for s.requests.Used() > 2*connectionBytes && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if status, text := post(t, address, "/healthz", `{}`); status != 405 {
		t.Errorf("when there is room: %d %s", status, text)
	}
}
