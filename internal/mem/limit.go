package mem

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Available returns the bytes that this process may use: the smallest of the machine's memory and
// the limits of its cgroups (v1 and v2), or 0 if neither can be read.
func Available() int64 {
	best := machineBytes()
	for _, dir := range cgroupDirs() {
		for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
			if v, ok := readInt(filepath.Join(dir, name)); ok && v > 0 && (best == 0 || v < best) {
				best = v
			}
		}
	}
	return best
}

// RSS returns the resident bytes of this process now and at its peak, or zeros where /proc is
// missing.
func RSS() (now, peak int64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	return statusField(string(b), "VmRSS:"), statusField(string(b), "VmHWM:")
}

func statusField(status, name string) int64 {
	_, rest, ok := strings.Cut(status, name)
	if !ok {
		return 0
	}
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

func machineBytes() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return statusField(string(b), "MemTotal:")
}

// cgroupDirs lists the memory cgroup of this process and its parents, in both hierarchies.
func cgroupDirs() (dirs []string) {
	self, err := os.ReadFile(cgroupSelf)
	if err != nil {
		return nil
	}
	for _, h := range hierarchies(cgroupRoot, string(self)) {
		for dir := h.group; ; dir = filepath.Dir(dir) {
			dirs = append(dirs, filepath.Join(h.root, dir))
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return dirs
}

func readInt(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || v > math.MaxInt64/2 {
		return 0, false
	}
	return int64(v), true
}

// ResetPeak resets the peak that RSS returns, where the kernel allows it.
func ResetPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("mem: reset the peak: %w", err)
	}
	return nil
}
