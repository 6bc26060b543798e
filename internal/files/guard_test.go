package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// store makes a directory with a regular file, a link to it, a pipe, a device and links in runs.
func store(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("here"), 0o600))
	must(os.Symlink("file", at("link")))
	must(unix.Mkfifo(at("pipe"), 0o600))
	must(os.Symlink(os.DevNull, at("device")))
	must(os.MkdirAll(at("runs/r"), 0o700))
	must(os.WriteFile(at("runs/r/run.json"), nil, 0o600))
	must(os.Symlink("run.json", at("runs/r/state")))
	must(os.Symlink(dir, at("runs/away")))
	return dir
}

func TestOpensRegularFilesOnly(t *testing.T) {
	dir := store(t)
	fs := Guard(vfs.Default, dir, "runs")
	for name, ok := range map[string]bool{"file": true, "link": true, "pipe": false,
		"device": false,
		"runs":   false, "runs/r/run.json": true, "runs/r/state": false, "runs/away/file": false} {
		f, err := fs.Open(filepath.Join(dir, name))
		if ok != (err == nil) || !ok && !errors.Is(err, ErrRefused) {
			t.Errorf("open %s: %v", name, err)
		}
		if err == nil {
			err = f.Close()
		}
		if ok && err != nil {
			t.Error(err)
		}
	}
	if _, err := fs.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

// TestLinksLeadNowhere: whatever would write through a link in runs fails, and removes no more than
// the link itself.
func TestLinksLeadNowhere(t *testing.T) {
	dir := store(t)
	fs := Guard(vfs.Default, dir, "runs")
	away := filepath.Join(dir, "runs", "away")
	create := func(path string) error {
		_, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		return err
	}
	list := func(path string) error { _, err := fs.List(path); return err }
	stat := func(path string) error { _, err := fs.Stat(path); return err }
	for what, err := range map[string]error{
		"create": create(filepath.Join(away, "new")), "list": list(away),
		"stat": stat(filepath.Join(away, "file")), "remove": fs.Remove(filepath.Join(away, "file")),
		"remove all": fs.RemoveAll(filepath.Join(away, "file")),
		"make":       fs.MkdirAll(filepath.Join(away, "sub"), 0o700),
		"rename":     fs.Rename(filepath.Join(dir, "file"), filepath.Join(away, "moved"))} {
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s through a link: %v, want ErrRefused", what, err)
		}
	}
	state := filepath.Join(dir, "runs", "r", "state")
	f, err := fs.Create(state, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatalf("create in place of a link: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(state); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the new file: %v, %v", info, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(b) != "here" {
		t.Errorf("the file elsewhere: %q, %v", b, err)
	}
}

// TestGuardOfMemory is nothing, and one guard is enough.
func TestGuardOfMemory(t *testing.T) {
	if mem := vfs.NewMem(); Guard(mem, "x") != vfs.FS(mem) {
		t.Error("a file system in memory is guarded")
	}
	if g := Guard(vfs.Default, "x", "runs"); Guard(g, "x") != g || vfs.Root(g) != vfs.Default {
		t.Error("a guard is guarded, or hides the file system behind")
	}
}
