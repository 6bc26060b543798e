package mem

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGroupPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		self string
		want []Cgroup
	}{
		"v1": {"9:cpu:/a\n4:memory:/a/b\n0::/\n", []Cgroup{{dir: "/cg/memory/a/b"},
			{dir: "/cg/memory"}, {dir: "/cg", v2: true}, {dir: "/cg", v2: true}}},
		"v1 with others": {"4:cpuset,memory:/\n", []Cgroup{{dir: "/cg/memory"},
			{dir: "/cg/memory"}}},
		"v2": {"0::/user.slice/shell.scope\n", []Cgroup{{dir: "/cg/user.slice", v2: true},
			{dir: "/cg", v2: true}}},
		"none": {"1:cpu:/\nrubbish\n", nil},
	} {
		if got := groupPlaces("/cg", c.self); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// mustWrite writes a file of a pretended cgroup.
func mustWrite(t *testing.T, g *Cgroup, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryGroup(t *testing.T) {
	for _, c := range []struct {
		self, place, limit, peak, events, kills string
	}{
		{"4:memory:/\n", "memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes",
			"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
		{"0::/x/y\n", "x", "memory.max", "memory.peak", "memory.events",
			"low 0\noom 3\noom_kill 2\n"},
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, c.place), 0o755); err != nil {
			t.Fatal(err)
		}
		g, err := newCgroup(root, c.self, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(g.dir) != filepath.Join(root, c.place) {
			t.Errorf("made in %s", g.dir)
		}
		if s, err := g.read(c.limit); err != nil || s != "1048576" {
			t.Errorf("limit %q, %v", s, err)
		}
		if g.Kills() != 0 {
			t.Error("kills before any")
		}
		if _, err := g.Peak(); err == nil {
			t.Error("a peak that the kernel does not tell")
		}
		mustWrite(t, g, c.peak, "4096\n")
		mustWrite(t, g, c.events, c.kills)
		if n, err := g.Peak(); err != nil || n != 4096 || g.Kills() != 2 {
			t.Errorf("peak %d, %v, %d kills", n, err, g.Kills())
		}
		if err := JoinCgroup(g.dir); err != nil {
			t.Error(err)
		}
		if s, _ := g.read("cgroup.procs"); s == "" {
			t.Error("not joined")
		}
		names, err := filepath.Glob(filepath.Join(g.dir, "*"))
		for _, name := range names {
			err = os.Remove(name) // a real cgroup's go with their directory
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestNoMemoryGroup(t *testing.T) {
	_, err := newCgroup(t.TempDir(), "1:cpu:/\n", 1<<20)
	if err == nil || !strings.Contains(err.Error(), "no memory cgroups") {
		t.Errorf("error %v", err)
	}
	_, err = newCgroup(filepath.Join(t.TempDir(), "gone"), "4:memory:/\n", 1<<20)
	if err == nil {
		t.Error("a group in a directory that is not there")
	}
}
