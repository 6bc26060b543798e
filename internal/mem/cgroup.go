package mem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Files of cgroups belong to the kernel, not to a store, so they are used through package os.
const (
	cgroupRoot = "/sys/fs/cgroup"
	cgroupSelf = "/proc/self/cgroup"
)

// Cgroup is a memory cgroup made for one child process: anonymous memory and page cache of what
// runs in it are bounded together. Its owner calls Remove when the process has ended.
type Cgroup struct {
	dir string
	v2  bool
}

// groupPrefix begins the names of groups; the process that made them and a number follow.
const groupPrefix = "gdb-bench-"

// groups is the number of groups that this process has made.
var groups atomic.Uint64

// newCgroup makes a group that is bounded to this many bytes, in the hierarchy (v1 or v2) that the
// kernel has under root. self is this process's /proc/self/cgroup.
func newCgroup(root, self string, bytes int64) (*Cgroup, error) {
	name := fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), groups.Add(1))
	var errs error
	for _, g := range groupPlaces(root, self) {
		removeDeadGroups(g.dir)
		g.dir = filepath.Join(g.dir, name)
		err := g.make(bytes)
		if err == nil {
			return &g, nil
		}
		errs = errors.Join(errs, err)
	}
	if errs == nil {
		errs = errors.New("the kernel shows no memory cgroups under " + root)
	}
	return nil, fmt.Errorf("make a memory cgroup: %w", errs)
}

// NewCgroup makes a group bounded to this many bytes, for a child of this process.
func NewCgroup(bytes int64) (*Cgroup, error) {
	self, err := os.ReadFile(cgroupSelf) //lint:os the kernel's file
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	return newCgroup(cgroupRoot, string(self), bytes)
}

// Dir returns the directory of the group, for JoinCgroup.
func (g *Cgroup) Dir() string { return g.dir }

// removeDeadGroups removes groups in dir whose owner was killed. Failures are ignored: the kernel
// keeps a group that has processes, and another process may have removed it.
func removeDeadGroups(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, groupPrefix+"*"))
	for _, path := range paths {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		pid, err := strconv.Atoi(owner)
		if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = os.Remove(path) //lint:os a cgroup
		}
	}
}

// hierarchy is where a hierarchy of cgroups that counts memory is mounted, and the group of a
// process in it.
type hierarchy struct {
	root, group string
	v2          bool
}

// hierarchies returns the hierarchies under root that count memory, given the text of a process's
// /proc/self/cgroup.
func hierarchies(root, self string) (all []hierarchy) {
	for line := range strings.Lines(self) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case strings.Contains(","+f[1]+",", ",memory,"):
			all = append(all, hierarchy{root: filepath.Join(root, "memory"), group: f[2]})
		case f[1] == "":
			all = append(all, hierarchy{root: root, group: f[2], v2: true})
		}
	}
	return all
}

// groupPlaces returns where a group may be made, the likeliest first: inside this process's own
// group for v1; beside it for v2, where a group with processes has no children; else at the root,
// where a container's group is mounted.
func groupPlaces(root, self string) (places []Cgroup) {
	for _, h := range hierarchies(root, self) {
		likeliest := h.group
		if h.v2 {
			likeliest = filepath.Dir(h.group)
		}
		places = append(places, Cgroup{dir: filepath.Join(h.root, likeliest), v2: h.v2},
			Cgroup{dir: h.root, v2: h.v2})
	}
	return places
}

// make creates the directory and sets the limit, and forbids swap where the kernel allows that.
func (g *Cgroup) make(bytes int64) error {
	limit, swap := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	swapBytes := bytes // of v1, whose limit includes memory
	if g.v2 {
		limit, swap, swapBytes = "memory.max", "memory.swap.max", 0
		// Children have the controller only if their parent passes it on; it may do so already.
		_ = g.write(filepath.Join("..", "cgroup.subtree_control"), "+memory")
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil { //lint:os a cgroup
		return err
	}
	if err := g.write(limit, strconv.FormatInt(bytes, 10)); err != nil {
		return errors.Join(err, g.Remove())
	}
	_ = g.write(swap, strconv.FormatInt(swapBytes, 10)) // fails without swap accounting
	return nil
}

func (g *Cgroup) write(file, value string) error {
	path := filepath.Join(g.dir, file)
	return os.WriteFile(path, []byte(value), 0o644) //lint:os a cgroup
}

func (g *Cgroup) read(file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(g.dir, file)) //lint:os a cgroup
	return strings.TrimSpace(string(b)), err
}

// Peak returns the most memory that the group ever held, page cache included.
func (g *Cgroup) Peak() (int64, error) {
	file := "memory.max_usage_in_bytes"
	if g.v2 {
		file = "memory.peak"
	}
	s, err := g.read(file)
	if err != nil {
		return 0, fmt.Errorf("the cgroup's peak: %w", err)
	}
	return strconv.ParseInt(s, 10, 64)
}

// Kills returns the number of processes that were killed for lack of memory.
func (g *Cgroup) Kills() int {
	file := "memory.oom_control"
	if g.v2 {
		file = "memory.events"
	}
	s, err := g.read(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(s) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			kills, _ := strconv.Atoi(n)
			return kills
		}
	}
	return 0
}

// Remove deletes the group. It does nothing for nil. The kernel takes a moment to notice that the
// last process has ended, so it tries for half a second.
func (g *Cgroup) Remove() (err error) {
	if g == nil {
		return nil
	}
	for range 50 {
		if err = os.Remove(g.dir); err == nil { //lint:os a cgroup
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("remove the cgroup: %w", err)
}

// JoinCgroup moves this process into the cgroup in dir. Memory that it already holds is not moved,
// so a process that is to be measured joins and then executes itself again.
func JoinCgroup(dir string) error {
	g := Cgroup{dir: dir}
	if err := g.write("cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return fmt.Errorf("join the cgroup: %w", err)
	}
	return nil
}
