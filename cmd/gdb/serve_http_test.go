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
)

// httpServer is a gdb serve --http in a process of its own.
type httpServer struct {
	cmd     *exec.Cmd
	address string
}

// mustServe starts a server and waits until it answers.
func mustServe(t *testing.T, args ...string) *httpServer {
	t.Helper()
	s := &httpServer{cmd: child(context.Background(), append([]string{"serve", "--http",
		"127.0.0.1:0"}, args...)...)}
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
