package serve

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// leave makes a socket at path as a server that was killed leaves it.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// shortDir is a folder whose name is short, as the path of a socket must be.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestListen: the socket is its owner's alone, one that a dead server left is replaced, one of a
// living server is not, and nothing is left behind.
func TestListen(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	info, err := os.Stat(r.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Listen(r.path); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("listens where a server is: %v", err)
	}
	dir := shortDir(t)
	left := filepath.Join(dir, "left")
	leave(t, left)
	l, err := Listen(left)
	if err != nil {
		t.Fatalf("a socket that was left: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v, %v are left", err, files)
	}
}

// TestListenTakesNoSocketAlone: a server that has the socket and not the lock, as one of an older
// gdb, is left alone too.
func TestListenTakesNoSocketAlone(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("listens where a server is: %v", err)
	}
	if c, err := net.Dial("unix", path); err != nil || c.Close() != nil {
		t.Errorf("its socket is gone: %v", err)
	}
}

// TestListenKeepsFiles: what is no socket is not removed, whatever it is: a file, an empty one, a
// folder, a link to a file, to nothing or to a socket; nor is a file where the lock would be.
func TestListenKeepsFiles(t *testing.T) {
	dir := shortDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	leave(t, at("socket"))
	for name, text := range map[string]string{"file": "text", "empty": "", "ours.lock": "text"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.Mkdir(at("folder"), 0o700), os.Symlink("file", at("link")),
		os.Symlink("nothing", at("dangling")), os.Symlink("socket", at("tosocket")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "empty", "folder", "link", "dangling", "tosocket"} {
		_, err := Listen(at(name))
		if err == nil || !strings.Contains(err.Error(), at(name)) ||
			!strings.Contains(err.Error(), "take another path") {
			t.Errorf("listens at %s: %v", name, err)
		}
		if _, err := os.Lstat(at(name)); err != nil {
			t.Errorf("%s was removed: %v", name, err)
		}
		if _, err := os.Lstat(at(name) + lockSuffix); err == nil {
			t.Errorf("the lock of %s is left", name)
		}
	}
	l, err := Listen(at("ours"))
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "ours.lock"} {
		if text, err := os.ReadFile(at(name)); err != nil || !bytes.Equal(text, []byte("text")) {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
}

// TestListenOnce: of servers that begin at one stale socket at the same time one has it in the end.
func TestListenOnce(t *testing.T) {
	const servers, rounds = 8, 50
	dir := shortDir(t)
	for range rounds {
		path := filepath.Join(dir, "s")
		leave(t, path)
		var all sync.WaitGroup
		var mu sync.Mutex
		var have []*Listener
		for range servers {
			all.Go(func() {
				l, err := Listen(path)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					have = append(have, l)
				} else if !strings.Contains(err.Error(), "another server is there") {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(have) != 1 {
			t.Fatalf("%d servers have the socket", len(have))
		}
		go func() {
			if c, err := have[0].AcceptUnix(); err == nil {
				_ = c.Close()
			}
		}()
		c, err := net.DialTimeout("unix", path, time.Minute)
		if err == nil {
			err = c.Close()
		}
		if err = errors.Join(err, have[0].Close()); err != nil {
			t.Fatal(err)
		}
	}
}
