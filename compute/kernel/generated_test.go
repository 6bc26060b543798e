package kernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestGenerated: assembly and declarations are what the generator writes.
func TestGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("the generator is compiled")
	}
	avo, neon := built(t, "./gen"), built(t, "./gen/neon")
	directive := regexp.MustCompile(
		`(?m)^//go:generate go run (?:-tags avogen )?\.+/(gen\S*) (\w+)$`)
	for pkg, source := range map[string]string{"kernel": "kernel.go", "bf16": "bf16/bf16.go",
		"amx": "amx/amx.go", "pq": "pq/pq.go"} {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		families := directive.FindAllStringSubmatch(string(text), -1)
		if len(families) == 0 {
			t.Fatalf("%s has no go:generate lines", source)
		}
		for _, family := range families {
			gen := avo
			if family[1] == "gen/neon" {
				gen = neon
			}
			checkGenerated(t, gen, pkg, filepath.Dir(source), family[2])
		}
	}
}

// built returns a generator.
func built(t *testing.T, folder string) string {
	t.Helper()
	gen := filepath.Join(t.TempDir(), "gen")
	build := exec.Command("go", "build", "-tags", "avogen", "-o", gen, folder)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return gen
}

// checkGenerated compares the files of a family in dir with new ones.
func checkGenerated(t *testing.T, gen, pkg, dir, family string) {
	cmd := exec.Command(gen, family)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOPACKAGE="+pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", family, err, out)
	}
	files, err := filepath.Glob(filepath.Join(cmd.Dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files", family, err, len(files))
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(dir, filepath.Base(file))
		if got, err := os.ReadFile(own); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate ./compute/kernel/...",
				own)
		}
	}
}
