package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// listed is a package as go list describes it.
type listed struct {
	Dir, ImportPath, Name, ForTest string
	GoFiles, SFiles                []string
	ImportMap                      map[string]string
	Standard                       bool
	Module                         *struct {
		Main      bool
		GoVersion string
	}
}

// TestOtherSystems checks the types of all packages and their tests as they are for a system that
// has none of Linux's calls and none of our assembly. Packages of others are read for what they
// export alone: to compile all of them for that system, as vet does, takes minutes.
func TestOtherSystems(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-test",
		"-json=Dir,ImportPath,Name,ForTest,GoFiles,SFiles,ImportMap,Standard,Module", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []*listed
	tested := map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
		tested[p.ForTest] = true
	}
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	files := token.NewFileSet()
	for _, p := range packages { // each is behind those that it imports
		// "a [b.test]" is a, compiled for the tests of b; "a [a.test]" has the files of tests too.
		path, _, copied := strings.Cut(p.ImportPath, " ")
		ours := p.Module != nil && p.Module.Main &&
			(copied && strings.TrimSuffix(path, "_test") == p.ForTest || !copied && !tested[path])
		if done[p.ImportPath] == nil && !strings.HasSuffix(p.ImportPath, ".test") {
			done[p.ImportPath] = p.typed(t, path, ours, files, done)
		}
	}
}

// typed returns the package with its types; of ours it checks the bodies of functions, and reports
// what is wrong.
func (p *listed) typed(t *testing.T, path string, ours bool, files *token.FileSet,
	done map[string]*types.Package) *types.Package {
	t.Helper()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil,
			parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		parsed = append(parsed, f)
		if ours && len(p.SFiles) == 0 {
			checkBodies(t, files, f)
		}
	}
	config := types.Config{
		IgnoreFuncBodies: !ours,
		Sizes:            types.SizesFor("gc", "arm64"),
		Importer: importer(func(path string) (*types.Package, error) {
			if to := p.ImportMap[path]; to != "" {
				path = to
			}
			if done[path] == nil {
				return nil, fmt.Errorf("%s was not listed before", path)
			}
			return done[path], nil
		}),
		Error: func(err error) {
			if ours {
				t.Errorf("on another system: %v: give what only Linux has a file with a build "+
					"constraint, and another beside it", err)
			}
		},
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	typed, _ := config.Check(path, files, parsed, nil) // Error was told
	return typed
}

// checkBodies reports functions that have neither a body nor assembly.
func checkBodies(t *testing.T, files *token.FileSet, f *ast.File) {
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body == nil {
			t.Errorf("on another system %s has no body, and its package no assembly: %s",
				fn.Name.Name, files.Position(fn.Pos()))
		}
	}
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
