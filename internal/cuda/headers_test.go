//go:build cuda && cgo && linux

package cuda_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHeaders compares our declarations with NVIDIA's headers where they are installed: constants
// by their values, structures by their sizes and the places of their fields, and functions by
// declaring ours behind theirs, which a compiler accepts only if they are the same. Newer headers
// give some names without a version to newer functions, and declare the old ones no more: those
// are not compared.
func TestHeaders(t *testing.T) {
	dir := realHeaders()
	if dir == "" {
		t.Skip("no CUDA headers here (set CUDA_HOME): our declarations are not compared")
	}
	include, err := filepath.Abs("include")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ header, entries, macro, result string }{
		{"cuda.h", "cuda_entries.h", "CUDA", "CUresult"},
		{"cublas_v2.h", "cublas_entries.h", "BLAS", "cublasStatus_t"},
	} {
		ours, err := os.ReadFile(filepath.Join(include, c.header))
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadFile(filepath.Join(include, c.entries))
		if err != nil {
			t.Fatal(err)
		}
		real := fmt.Sprintf("#include <%s>\n", c.header)
		if out, err := compileC(t, dir, real); err != nil {
			t.Logf("the headers in %s miss something, so they are not compared: %s", dir, out)
			continue
		}
		source := real + assertions(string(ours)) + undefined(string(entries)) +
			fmt.Sprintf("#define %s(name, arguments) %s name arguments;\n", c.macro, c.result) +
			string(entries)
		if out, err := compileC(t, dir, source); err != nil {
			t.Errorf("our declarations differ from those in %s: %v\n%s", dir, err, out)
		}
	}
}

// realHeaders returns where NVIDIA's headers are, or nothing.
func realHeaders() string {
	for _, dir := range []string{os.Getenv("CUDA_HOME") + "/include", "/usr/local/cuda/include",
		"/opt/cuda/include", "/usr/include"} {
		if _, err := os.Stat(filepath.Join(dir, "cublas_v2.h")); err == nil {
			return dir
		}
	}
	return ""
}

var (
	constant  = regexp.MustCompile(`(C[A-Z0-9_]+) = (-?\d\w*)`)
	structure = regexp.MustCompile(`(?s)typedef struct \{([^}]*)\}[^;{}]*?(\w+);`)
	entry     = regexp.MustCompile(`(?m)^(?:CUDA|BLAS)\((\w+),`)
	field     = regexp.MustCompile(`(\w+)(?:\[\d+\])?[,;]`)
)

// grown are masks that have more bits in the headers of CUDA 12 and newer, and structures that have
// more fields behind ours. The functions that we call take the old ones.
var grown = map[string]bool{"CU_CTX_FLAGS_MASK": true, "CUDA_KERNEL_NODE_PARAMS": true}

// assertions are C that holds the constants and structures of a header of ours.
func assertions(header string) string {
	var b strings.Builder
	for _, m := range constant.FindAllStringSubmatch(header, -1) {
		holds := fmt.Sprintf("(long long)%s == %s", m[1], m[2])
		if grown[m[1]] {
			holds = fmt.Sprintf("((long long)%s & %s) == %[2]s", m[1], m[2])
		}
		fmt.Fprintf(&b, "_Static_assert(%s, \"%s\");\n", holds, m[1])
	}
	for _, m := range structure.FindAllStringSubmatch(header, -1) {
		fields := field.FindAllStringSubmatch(m[1], -1)
		same := "=="
		if grown[m[2]] {
			same = ">="
		}
		fmt.Fprintf(&b, "struct our_%s {%s};\n_Static_assert(sizeof(%[1]s) %[3]s sizeof(struct "+
			"our_%[1]s), \"%[1]s\");\n", m[2], m[1], same)
		for _, f := range fields {
			fmt.Fprintf(&b, "_Static_assert(__builtin_offsetof(%s, %s) == "+
				"__builtin_offsetof(struct our_%s, %s), \"%s.%s\");\n", m[2], f[1], m[2], f[1],
				m[2], f[1])
		}
	}
	return b.String()
}

// undefined takes macros away that give the names of our functions to newer ones.
func undefined(entries string) string {
	var b strings.Builder
	for _, m := range entry.FindAllStringSubmatch(entries, -1) {
		fmt.Fprintf(&b, "#undef %s\n", m[1])
	}
	return b.String()
}

// compileC compiles C with the real headers.
func compileC(t *testing.T, dir, source string) (out []byte, err error) {
	file := filepath.Join(t.TempDir(), "headers.c")
	if err := os.WriteFile(file, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	return exec.Command("cc", "-w", "-fsyntax-only", "-fmax-errors=20", "-I"+dir, file).
		CombinedOutput()
}
