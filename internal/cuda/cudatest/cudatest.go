//go:build cuda && cgo && linux

package cudatest

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

static void *find(const char *library, const char *name) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  return handle ? dlsym(handle, name) : NULL;
}

static int set_knob(const char *library, const char *name, long long value) {
  void *set = find(library, "emu_set");
  if (set) ((void (*)(const char *, long long))set)(name, value);
  return set != NULL;
}

static long long get_knob(const char *library, const char *name) {
  void *get = find(library, "emu_get");
  return get ? ((long long (*)(const char *))get)(name) : -1;
}
*/
import "C"

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"gdb/internal/cuda"

	"golang.org/x/sys/unix"
)

// Emulator is the emulated device that this process's driver is.
type Emulator struct{ library string }

// started is the one emulator of a process: a driver is loaded once.
var started struct {
	sync.Mutex
	kernels string
	library string
	err     error
}

// errNoCompiler says that tests of kernels are left out.
var errNoCompiler = errors.New("no C++ compiler here (g++ or clang++): tests on the emulated " +
	"device are left out")

// Start gives the test a device: the emulated one with the kernels of a source file, whose path is
// relative to the test's package. Each kernel is defined there, or in a file of its folder that it
// includes, as KERNEL(name)(parameters). All tests of a package must name the same file. It skips
// the test where nothing can compile it.
func Start(tb testing.TB, kernels string) *Emulator {
	tb.Helper()
	if os.Getenv("GDB_TEST_CUDA") == "device" {
		if err := cuda.Available(); err != nil {
			tb.Skip(err)
		}
		return &Emulator{}
	}
	s := &started
	s.Lock()
	defer s.Unlock()
	if s.kernels == "" {
		s.kernels = kernels
		s.library, s.err = build(kernels)
	}
	if s.kernels != kernels {
		tb.Fatalf("this process has the kernels of %s already", s.kernels)
	}
	if errors.Is(s.err, errNoCompiler) {
		tb.Skip(s.err)
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	tb.Setenv("GDB_LIBCUDA", s.library)
	tb.Setenv("GDB_LIBCUBLAS", s.library)
	if err := cuda.Available(); err != nil {
		tb.Fatal(err)
	}
	return &Emulator{library: s.library}
}

// Emulated reports whether the device is emulated.
func (e *Emulator) Emulated() bool { return e.library != "" }

// Sanitized reports whether the address sanitizer is preloaded: the emulated device is built with
// it then, and a wrong address ends the process with a report of the kernel's line.
func Sanitized() bool { return strings.Contains(os.Getenv("LD_PRELOAD"), "libasan") }

// Set sets a knob of the emulation (see emu/state.h) until the test ends, and skips the test on a
// device.
func (e *Emulator) Set(tb testing.TB, knob string, value int64) {
	tb.Helper()
	if !e.Emulated() {
		tb.Skip("only the emulated device does this")
	}
	before := e.Count(knob)
	e.set(tb, knob, value)
	tb.Cleanup(func() { e.set(tb, knob, before) })
}

func (e *Emulator) set(tb testing.TB, knob string, value int64) {
	library, name := C.CString(e.library), C.CString(knob)
	defer C.free(unsafe.Pointer(library))
	defer C.free(unsafe.Pointer(name))
	if C.set_knob(library, name, C.longlong(value)) == 0 {
		tb.Fatalf("the emulated device is not loaded")
	}
}

// Count returns a knob, or a count that the emulation keeps: allocations, allocated_bytes, locked,
// launches, graph_launches, copies, bytes_to_device, bytes_to_host, products, calls, and waits of
// the host: for streams, and event_waits. It is 0 on a device.
func (e *Emulator) Count(name string) int64 {
	if !e.Emulated() {
		return 0
	}
	library, n := C.CString(e.library), C.CString(name)
	defer C.free(unsafe.Pointer(library))
	defer C.free(unsafe.Pointer(n))
	return int64(C.get_knob(library, n))
}

var kernelName = regexp.MustCompile(`(?m)^\w*KERNEL\((\w+)\)`)

// namesBeside lists the kernels of a file, and of those beside it that it may include.
func namesBeside(kernels string) (names string, err error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(kernels), "*.cu"))
	for _, file := range files {
		source, err := os.ReadFile(file) //lint:os a test's source
		if err != nil {
			return "", err
		}
		for _, m := range kernelName.FindAllSubmatch(source, -1) {
			names += fmt.Sprintf("K(%s) ", m[1])
		}
	}
	return names, err
}

// build compiles the emulated device with the kernels of a file, or finds it where a test of the
// same sources left it.
func build(kernels string) (library string, err error) {
	compiler := compiler()
	if compiler == "" {
		return "", errNoCompiler
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	kernels, err = filepath.Abs(kernels)
	if err != nil {
		return "", err
	}
	names, err := namesBeside(kernels)
	if err != nil {
		return "", err
	}
	here := filepath.Join(root, "internal", "cuda")
	arguments := []string{"-std=c++17", "-O2", "-fPIC", "-shared",
		"-I" + filepath.Join(here, "include"), "-I" + filepath.Join(here, "emu"),
		fmt.Sprintf("-DEMU_KERNELS=%q", kernels), "-DEMU_KERNEL_NAMES=" + names,
		filepath.Join(here, "emu", "emu.cpp"), filepath.Join(here, "emu", "kernels.cpp")}
	if Sanitized() {
		arguments = append(arguments, "-fsanitize=address", "-g")
	}
	return cached(append([]string{compiler}, arguments...), sources(here, kernels))
}

// cached returns the path of the library that a compiler makes of some files. The library is made
// once for all packages and runs that ask for it.
func cached(command, files []string) (library string, err error) {
	key := sha256.New()
	fmt.Fprintf(key, "%q\n", command)
	for _, file := range files {
		text, err := os.ReadFile(file) //lint:os a test's source
		if err != nil {
			return "", err
		}
		fmt.Fprintf(key, "%s %d\n%s", file, len(text), text)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "gdb-emulated-device")
	library = filepath.Join(dir, hex.EncodeToString(key.Sum(nil)[:12])+".so")
	unlock, err := locked(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	now := time.Now()
	if os.Chtimes(library, now, now) == nil { //lint:os it is in use
		return library, nil
	}
	cmd := exec.Command(command[0], append(command[1:], "-o", library+".new")...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command[0], err, out)
	}
	return library, errors.Join(os.Rename(library+".new", library), //lint:os what was made
		removeOld(dir))
}

// locked makes a folder and has other processes wait until unlock.
func locked(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //lint:os of the cache
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "LOCK")) //lint:os it holds the lock
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // which cannot fail in a way that matters
}

// keptFor is how long a library stays that no test uses.
const keptFor = 3 * 24 * time.Hour

// removeOld removes libraries that nobody used lately.
func removeOld(dir string) error {
	all, err := os.ReadDir(dir) //lint:os of the cache
	for _, entry := range all {
		info, e := entry.Info()
		if e == nil && entry.Name() != "LOCK" && time.Since(info.ModTime()) > keptFor {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name()))) //lint:os old
		}
	}
	return err
}

// sources returns the files that the compiler reads. The test itself opens them in cached, so that
// go test sees them change: it takes the result of a test from its cache as long as the files that
// the test has opened are the same.
func sources(here, kernels string) (files []string) {
	for _, dir := range []string{filepath.Join(here, "emu"), filepath.Join(here, "include"),
		filepath.Dir(kernels)} {
		all, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is none that is bad
		for _, file := range all {
			if slices.Contains([]string{".h", ".cu", ".cpp"}, filepath.Ext(file)) {
				files = append(files, file)
			}
		}
	}
	return files
}

func compiler() string {
	for _, name := range []string{os.Getenv("CXX"), "g++", "clang++"} {
		if name != "" {
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
	}
	return ""
}

// moduleRoot returns the directory of go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(string(bytes.TrimSpace(out))), nil
}
