package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// httpServer is a gdb serve --http in a process of its own.
type httpServer struct {
	cmd     *exec.Cmd
	address string
}

// mustServe starts gdb serve and waits until it answers.
func mustServe(t *testing.T, args ...string) *httpServer {
	t.Helper()
	return mustBegin(t, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
}

// mustBegin starts a command that serves HTTP and waits until it answers.
func mustBegin(t *testing.T, args ...string) *httpServer {
	t.Helper()
	s := &httpServer{cmd: child(context.Background(), args...)}
	notes, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	lines := bufio.NewScanner(notes)
	for s.address == "" && lines.Scan() {
		_, s.address, _ = strings.Cut(lines.Text(), " at http://")
		s.address, _, _ = strings.Cut(s.address, "/")
	}
	go func() { _, _ = io.Copy(io.Discard, notes) }()
	if s.address == "" {
		t.Fatalf("the server did not begin: %v", s.cmd.Wait())
	}
	return s
}

// end sends a signal and returns how the server ended.
func (s *httpServer) end(signal syscall.Signal) error {
	if err := s.cmd.Process.Signal(signal); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// rows asks for predictions of all ids and returns them as rows of gdb predict.
func (s *httpServer) rows(ids []string) (rows []string, err error) {
	body, err := json.Marshal(map[string]any{"ids": ids, "probabilities": true})
	if err != nil {
		return nil, err
	}
	r, err := http.Post("http://"+s.address+"/predict", "application/json",
		strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var out struct {
		Predictions []struct {
			ID, Prediction string
			Probabilities  []float32
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
		return nil, err
	}
	for _, p := range out.Predictions {
		row := p.ID + "," + p.Prediction
		for _, v := range p.Probabilities {
			row += fmt.Sprintf(",%v", v)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// TestServeHTTP: HTTP answers what gdb predict writes, to the last digit, also after a server was
// killed; SIGTERM ends it with exit code 130, and
// nothing is left behind.
func TestServeHTTP(t *testing.T) {
	t.Chdir(t.TempDir())
	store := killStore(t)
	mustRun(t, append([]string{"train", store, "--run", "r", "--quiet", "--epochs", "2", "--fanout",
		"3,3", "--hidden", "8", "--batch", "100"}, "--memory", "512MiB")...)
	mustRun(t, "predict", store, "--run", "r", "--out", "all.csv", "--probabilities", "--memory",
		"512MiB")
	b, err := os.ReadFile("all.csv")
	if err != nil {
		t.Fatal(err)
	}
	want, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var ids, rows []string
	for _, row := range want[1:min(len(want), 5000)] {
		ids, rows = append(ids, row[0]), append(rows, strings.Join(row, ","))
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		s := mustServe(t, store, "--run", "r", "--memory", "512MiB")
		got, err := s.rows(ids)
		if err != nil || strings.Join(got, "\n") != strings.Join(rows, "\n") {
			t.Fatalf("%v: %d rows differ from %d of gdb predict", err, len(got), len(rows))
		}
		err = s.end(signal)
		var exit *exec.ExitError
		if signal == syscall.SIGTERM && (!errors.As(err, &exit) ||
			exit.ExitCode() != exitInterrupted) {
			t.Errorf("SIGTERM: the server ended with %v", err)
		}
	}
	left, err := filepath.Glob(filepath.Join(store, "runs", "r", "predict-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestServeFollows: a server answers by a snapshot soon after it is committed, what gdb predict
// writes of it, while requests come all the time. A compaction is followed
// too, and nothing is left behind.
func TestServeFollows(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTables(t, map[string]string{"e.csv": "src,dst\na,b\nb,c\nc,a\nd,a\n",
		"n.csv":  "id,kind,part,x\na,red,train,1\nb,blue,train,2\nc,red,val,3\nd,blue,test,4\n",
		"e1.csv": "src,dst\na,e\n", "n1.csv": "id,kind,part,x\ne,red,train,1\n",
		"e2.csv": "src,dst\ne,f\n", "n2.csv": "id,kind,part,x\nf,red,train,2\n"})
	of := []string{"--label-col", "kind", "--split-col", "part", "--feature-cols", "x"}
	mustRun(t, append([]string{"ingest", "--edges", "e.csv", "--nodes", "n.csv", "--out", "s.gdb",
		"--quiet"}, of...)...)
	mustRun(t, "train", "s.gdb", "--run", "r", "--quiet", "--epochs", "2", "--hidden", "4")
	s := mustServe(t, "s.gdb", "--run", "r", "--memory", "1GiB", "--follow", "100ms")
	stop := s.keepAsking(t, []string{"a", "b", "c", "d"})
	for i, id := range []string{"e", "f"} {
		files := []string{fmt.Sprintf("e%d.csv", i+1), fmt.Sprintf("n%d.csv", i+1)}
		mustRun(t, append([]string{"append", "s.gdb", "--edges", files[0], "--nodes", files[1],
			"--quiet"}, of...)...)
		s.awaitSnapshot(t, i+1)
		mustRun(t, "predict", "s.gdb", "--run", "r", "--at", "latest", "--out", "p.csv",
			"--probabilities", "--memory", "512MiB", "--force")
		b, err := os.ReadFile("p.csv")
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(string(b), "\n"+id+",")
		got, err := s.rows([]string{id})
		if err != nil || len(got) != 1 || got[0] != id+","+strings.SplitN(want, "\n", 2)[0] {
			t.Errorf("%v: %v, want %s,%s", err, got, id, want)
		}
	}
	mustRun(t, "compact", "s.gdb", "--quiet")
	s.awaitSnapshot(t, 3)
	if asked := stop(); asked < 10 {
		t.Errorf("%d requests were answered", asked)
	}
	err := s.end(syscall.SIGTERM)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("SIGTERM: the server ended with %v", err)
	}
	left, err := filepath.Glob("s.gdb/tmp/readers/*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// writeTables writes files.
func writeTables(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// keepAsking asks for predictions of ids, one request after the other, until stop is called, which
// returns how many were answered. One that is not answered is an error.
func (s *httpServer) keepAsking(t *testing.T, ids []string) (stop func() int) {
	done, asked := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-done:
				asked <- n
				return
			default:
			}
			if got, err := s.rows(ids); err != nil || len(got) != len(ids) {
				t.Errorf("request %d: %v, %v", n, got, err)
			}
			n++
			time.Sleep(time.Millisecond)
		}
	}()
	return func() int { close(done); return <-asked }
}

// awaitSnapshot waits until a server answers by a snapshot.
func (s *httpServer) awaitSnapshot(t *testing.T, number int) {
	t.Helper()
	for range 600 {
		r, err := http.Get("http://" + s.address + "/info")
		if err != nil {
			t.Fatal(err)
		}
		var info struct{ Snapshot int }
		err = errors.Join(json.NewDecoder(r.Body).Decode(&info), r.Body.Close())
		if err != nil {
			t.Fatal(err)
		}
		if info.Snapshot >= number {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("snapshot %d does not answer after 30 s", number)
}

// TestUIFollows: pages show what was committed, and runs that were made, while the server goes on.
func TestUIFollows(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTables(t, map[string]string{"e.csv": "src,dst\na,b\nb,c\nc,a\nd,a\n",
		"n.csv":  "id,kind,part,x\na,red,train,1\nb,blue,train,2\nc,red,val,3\nd,blue,test,4\n",
		"e1.csv": "src,dst\na,e\n", "n1.csv": "id,kind,part,x\ne,red,train,1\n"})
	of := []string{"--label-col", "kind", "--split-col", "part", "--feature-cols", "x", "--quiet"}
	mustRun(t, append([]string{"ingest", "--edges", "e.csv", "--nodes", "n.csv", "--out",
		"s.gdb"}, of...)...)
	s := mustBegin(t, "ui", "s.gdb", "--addr", "127.0.0.1:0", "--memory", "512MiB", "--follow",
		"100ms")
	for _, c := range []struct{ path, want string }{
		{"/", "<td>nodes</td><td>4</td>"},
		{"/node?id=e", "no node"},
		{"/statement?q=MATCH+(a)-->(b)+RETURN+count(*)", "<td>4</td>"},
	} {
		if text := s.page(t, c.path); !strings.Contains(text, c.want) {
			t.Errorf("%s before: no %q in\n%s", c.path, c.want, text)
		}
	}
	mustRun(t, append([]string{"append", "s.gdb", "--edges", "e1.csv", "--nodes", "n1.csv"},
		of...)...)
	mustRun(t, "train", "s.gdb", "--run", "late", "--quiet", "--epochs", "1", "--hidden", "4")
	s.awaitSnapshot(t, 1)
	for _, c := range []struct{ path, want string }{
		{"/", "<td>nodes</td><td>5</td>"},
		{"/", `<a href="/run/late">`},
		{"/run/late", "<h1>Run late of"},
		{"/node?id=e", "Neighborhood of e"},
		{"/statement?q=MATCH+(a)-->(b)+RETURN+count(*)", "<td>5</td>"},
	} {
		if text := s.page(t, c.path); !strings.Contains(text, c.want) {
			t.Errorf("%s after: no %q in\n%s", c.path, c.want, text)
		}
	}
	mustRun(t, "compact", "s.gdb", "--quiet")
	s.awaitSnapshot(t, 2)
	if text := s.page(t, "/node?id=e"); !strings.Contains(text, "Neighborhood of e") {
		t.Errorf("compacted: no node e in\n%s", text)
	}
	var exit *exec.ExitError
	if err := s.end(syscall.SIGTERM); !errors.As(err, &exit) ||
		exit.ExitCode() != exitInterrupted {
		t.Errorf("SIGTERM: the server ended with %v", err)
	}
	left, err := filepath.Glob("s.gdb/tmp/readers/*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// page returns the text of a page, whatever its status.
func (s *httpServer) page(t *testing.T, path string) string {
	t.Helper()
	r, err := http.Get("http://" + s.address + path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestUI: gdb ui answers a browser in little memory, and ends by a signal as it should.
func TestUI(t *testing.T) {
	t.Chdir(t.TempDir())
	store := killStore(t)
	s := mustBegin(t, "ui", store, "--addr", "127.0.0.1:0", "--memory", "256MiB")
	r, err := http.Get("http://" + s.address + "/statement?q=STATS+GRAPH")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), "edges") {
		t.Errorf("%v, status %d:\n%s", err, r.StatusCode, text)
	}
	var exit *exec.ExitError
	if err := s.end(os.Interrupt.(syscall.Signal)); !errors.As(err, &exit) ||
		exit.ExitCode() != exitInterrupted {
		t.Errorf("interrupted, the server ended with %v", err)
	}
}

// TestServeLinks: scores and nearest nodes over HTTP are what the shell shows, and statements see
// the runs that are served.
func TestServeLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := testgraph.WriteCora(vfs.Default, "cora"); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "ingest", "cora", "--out", "s.gdb", "--undirected", "--edge-split",
		"random=85/5/10", "--quiet")
	mustRun(t, "train", "s.gdb", "--task", "link", "--decoder", "distmult", "--dim", "8",
		"--epochs", "1", "--run", "links", "--quiet")
	mustRun(t, "train", "s.gdb", "--epochs", "1", "--hidden", "8", "--fanout", "3", "--run",
		"nodes", "--quiet")
	s := mustServe(t, "s.gdb", "--run", "links", "--run", "nodes", "--memory", "512MiB")
	for statement, ask := range map[string][2]string{
		"NEAREST 3 TOP 3":           {"/nearest", `{"id":3,"top":3}`},
		"NEAREST 3 TOP 3 BY euclid": {"/nearest", `{"id":3,"top":3,"by":"euclid","run":"links"}`},
		"SCORE 3, 4":                {"/score", `{"head":3,"tail":4}`},
		"SCORE 3, ? TOP 4 NEW":      {"/score", `{"head":3,"top":4,"new":true}`},
		"SCORE ?, 3 TOP 2":          {"/score", `{"tail":3,"top":2}`},
		"NEIGHBORS 3 LIMIT 2":       {"/neighbors", `{"id":3,"limit":2}`},
		"MATCH (a {id: 3}) CALL gdb.predict([a], 'nodes') YIELD prediction RETURN prediction": {
			"/query", `{"statement":"MATCH (a {id: $x}) CALL gdb.predict([a, a], 'nodes') ` +
				`YIELD prediction RETURN prediction","params":{"x":3}}`},
	} {
		text, err := child(t.Context(), "shell", "s.gdb", "-c", statement, "--mode",
			"csv").Output()
		if err != nil {
			t.Fatal(statement, err)
		}
		want, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.table(ask[0], ask[1])
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s %s: %v, %v, the shell has %v", ask[0], ask[1], got, err, want)
		}
	}
	if err := s.end(syscall.SIGTERM); err == nil {
		t.Error("SIGTERM: the server ended with exit code 0")
	}
}

// table asks for rows and returns them as the shell writes them, with the header.
func (s *httpServer) table(path, body string) (rows [][]string, err error) {
	r, err := http.Post("http://"+s.address+path, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var out struct {
		Columns []string
		Rows    [][]any
	}
	if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
		return nil, err
	}
	rows = append(rows, out.Columns)
	for _, row := range out.Rows {
		var cells []string
		for _, cell := range row {
			switch v := cell.(type) {
			case nil:
				cells = append(cells, "")
			case float64:
				cells = append(cells, fmt.Sprint(float32(v)))
			default:
				cells = append(cells, fmt.Sprint(v))
			}
		}
		rows = append(rows, cells)
	}
	return rows, nil
}
