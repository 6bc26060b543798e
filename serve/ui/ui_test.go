package ui

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/serve/web"
	"gdb/train"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// hostile is text that acts where it is not escaped.
const hostile = `"><script>document.title="taken"</script>'`

const testNodes, testDim = 1200, 4

// testGraph is a graph whose ids and classes are hostile.
func testGraph() layouttest.Graph {
	g := layouttest.Learnable(testNodes, testDim, 3, hostile, "birch")
	for v := range testNodes {
		g.IDs = append(g.IDs, fmt.Sprintf("n%d", v))
	}
	g.IDs[7] = hostile
	return g
}

// mustTrain makes a store with two runs.
func mustTrain(t *testing.T) (*layout.Store, blockdev.Device) {
	t.Helper()
	st := layouttest.Build(t, vfs.NewMem(), "store", testGraph())
	dev := devtest.Open(t, blockdev.Options{})
	for i, name := range []string{"first", "second"} {
		c := setting.Default()
		c.Fanout, c.Hidden, c.Batch, c.Epochs, c.Run = []int{3, 3}, 4+4*i, 300, 2, name
		c.Threads, c.Memory = 2, 1<<30
		if _, err := train.Run(t.Context(), st, dev, c, nil); err != nil {
			t.Fatal(err)
		}
	}
	return st, dev
}

// mustServe serves the pages of a store with two runs, and returns their address.
func mustServe(t *testing.T, token string) string {
	t.Helper()
	st, dev := mustTrain(t)
	s, err := web.Open(t.Context(), web.Options{Store: st, Device: dev, Memory: 1 << 30,
		Threads: 2, Version: "test", Notes: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- web.HTTP{Service: s, Token: token, Pages: Pages()}.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-end; err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("the server ended with %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// page asks for a page and returns it in one line; change may change the request.
func page(t *testing.T, address string, change func(q *http.Request)) (*http.Response, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(q)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, strings.Join(strings.Fields(string(text)), " ")
}

func statement(text string) string { return "/statement?q=" + url.QueryEscape(text) }

// inline finds what acts in a page: a script that stands in it, or a handler of an event.
var inline = regexp.MustCompile(`<script>|<script [^s]|<[^>]* on[a-z]+=|javascript:|https?://[^w]`)

// TestPages: each page has its values, loads nothing from elsewhere, and no text of the store acts.
func TestPages(t *testing.T) {
	address := mustServe(t, "")
	escaped := "&lt;script&gt;document.title="
	for _, c := range []struct {
		path   string
		status int
		want   []string
	}{
		{"/", 200, []string{"<td>nodes</td><td>1,200</td>", `<a href="/run/first">first</a>`,
			`<td class="number">2</td><td>accuracy</td>`, `value="second"`}},
		{"/run/first", 200, []string{"<h1>Run first of store</h1>", `<a href="/statement">`,
			escaped, "<td>hidden</td><td>4</td>", "<svg"}},
		{"/compare?run=second&run=first&run=first", 200, []string{"<h1>2 runs of store</h1>",
			"<td>hidden</td><td>4</td><td>8</td>"}},
		{"/compare", 400, []string{"0 runs are chosen"}},
		{"/compare?run=..%2F..%2Fetc", 404, []string{"../../etc"}},
		{"/run/none", 404, []string{"run &#34;none&#34;"}},
		{"/run/..%2Ffirst", 404, []string{"../first"}},
		{"/node", 200, []string{`name="id"`}},
		{"/node?id=n3", 200, []string{"Neighborhood of n3", `<a href="/node?id=n`, escaped,
			"<th data-sort>neighbor</th>", "<td>n3</td><td>in</td>"}},
		{"/node?id=" + url.QueryEscape(hostile), 200, []string{escaped, "<svg"}},
		{"/node?id=%3Cscript%3Ealert(1)", 404, []string{"no node", "&lt;script&gt;", "n0"}},
		{statement("MATCH (a {id: 'n3'}) RETURN a.id, 1 + 2 AS three"), 200,
			[]string{"<td>n3</td><td>3</td>", "1 row."}},
		{statement("LABELS n2"), 200, []string{escaped}},
		{statement("UNWIND range(1, 1500) AS x RETURN x"), 200,
			[]string{"<td>1000</td>", "1500 rows; the first 1000 are shown"}},
		{statement("NEIGHBORS n3 INN"), 200, []string{`role="alert"`, "statement, character"}},
		{statement(hostile), 200, []string{`role="alert"`, escaped}},
		{statement("SET seed TO 4"), 200, []string{"a statement of the shell alone"}},
		{statement("explain check FULL"), 200, []string{"a statement of the shell alone"}},
		{statement("NEIGHBORS n3 INTO 'f.csv'"), 200, []string{"INTO writes a file"}},
		{statement("CREATE (n) RETURN n"), 200, []string{"does not begin with"}},
		{statement("MATCH (a {id: 'n3'}) SET a.x = 1"), 200, []string{`role="alert"`}},
		{statement("RETURN '" + strings.Repeat("x", 9000) + "'"), 200, []string{"at most 8192"}},
		{statement("EXPLAIN"), 200, []string{"nothing follows"}},
		{"/script.js", 200, []string{"use strict"}},
	} {
		r, text := page(t, address+c.path, nil)
		if r.StatusCode != c.status {
			t.Errorf("%.60s: status %d, want %d", c.path, r.StatusCode, c.status)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%.60s: no %q in\n%s", c.path, want, text)
			}
		}
		if bad := inline.FindString(text); bad != "" && c.path != "/script.js" {
			t.Errorf("%.60s: %q acts", c.path, bad)
		}
		policy := r.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'; script-src 'self'") ||
			strings.Contains(policy, "http") ||
			r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%.60s: the policy is %q", c.path, policy)
		}
	}
	r, text := page(t, address+"/script.js", nil)
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/javascript") ||
		strings.Contains(text, "innerHTML") {
		t.Errorf("the script is %s", kind)
	}
	t.Run("browser", func(t *testing.T) { testBrowser(t, address) })
}

// TestWhoMayAsk: other machines, other sites and wrong tokens get nothing.
func TestWhoMayAsk(t *testing.T) {
	open, closed := mustServe(t, ""), mustServe(t, "a-token-of-the-test")
	host := func(q *http.Request) { q.Host = "elsewhere.example" }
	other := func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "cross-site") }
	post := func(q *http.Request) { q.Method = http.MethodPost }
	basic := func(password string) func(q *http.Request) {
		return func(q *http.Request) { q.SetBasicAuth("anyone", password) }
	}
	bearer := func(q *http.Request) {
		q.Header.Set("Authorization", "Bearer a-token-of-the-test")
	}
	for name, c := range map[string]struct {
		address string
		change  func(q *http.Request)
		status  int
	}{
		"another host":      {open + "/", host, 403},
		"another site":      {open + statement("STATS GRAPH"), other, 403},
		"a link from there": {open + "/", other, 200},
		"another method":    {open + "/", post, 405},
		"no token":          {closed + "/", nil, 401},
		"no token, a run":   {closed + "/run/first", nil, 401},
		"no token, script":  {closed + "/script.js", nil, 401},
		"a wrong token":     {closed + "/", basic("a-token-of-the-tess"), 401},
		"the token":         {closed + "/", basic("a-token-of-the-test"), 200},
		"as of a program":   {closed + "/node?id=n3", bearer, 200},
	} {
		r, text := page(t, c.address, c.change)
		if r.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", name, r.StatusCode, c.status)
		}
		if asks := r.Header.Get("WWW-Authenticate"); (asks != "") != (c.status == 401) {
			t.Errorf("%s: asks for %q", name, asks)
		}
		if c.status != 200 && strings.Contains(text, "first") {
			t.Errorf("%s: it tells of a run:\n%s", name, text)
		}
	}
}

// TestPictures: a report has the vectors of the nodes of a split, by class, and a neighborhood; of
// a run that is not there it has a sentence instead of vectors.
func TestPictures(t *testing.T) {
	st, dev := mustTrain(t)
	o := PictureOptions{Run: "first", Split: "test",
		Limits: train.Limits{Memory: 1 << 30, Threads: 2}}
	all, err := Pictures(t.Context(), st, dev, o)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for _, want := range []string{"Vectors of 300 nodes", "last hidden layer", ">birch<"} {
		if !strings.Contains(string(all[0].SVG), want) {
			t.Errorf("no %q in\n%.2000s", want, all[0].SVG)
		}
	}
	if svg := string(all[1].SVG); !strings.Contains(svg, "Neighborhood of n") ||
		strings.Contains(svg, "<script") {
		t.Errorf("the neighborhood is\n%.2000s", svg)
	}
	o.Split, o.Run = "none", "nothing"
	all, err = Pictures(t.Context(), st, dev, o)
	if err != nil || len(all) != 2 || all[0].SVG != "" ||
		!strings.Contains(all[0].Why, "nothing") {
		t.Errorf("of a run that is not there: %+v, %v", all, err)
	}
}
