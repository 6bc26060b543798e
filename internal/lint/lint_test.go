// Package lint holds the style rules of this repository as tests, so that "go test ./..." is the
// only command a contributor has to know. Each message says what to do instead.
package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	funcLinesMax = 70  // one screen
	paramsMax    = 6   // of a function: more are a struct
	fileLinesMax = 600 // without tests
	lineWidthMax = 100 // columns, a tab counts as four
	root         = "../.."
)

// layers lists, bottom up, which of our folders each folder may import. A folder that is missing
// here may not exist: a new one is a decision.
var layers = map[string][]string{
	"internal": {},
	"blockdev": {"internal"},
	"kv":       {"internal", "blockdev"},
	"layout":   {"internal", "blockdev", "kv"},
	"sample":   {"internal", "blockdev", "kv", "layout"},
	"compute":  {"internal"},
	"train":    {"internal", "blockdev", "kv", "layout", "sample", "compute"},
	"shell":    {"internal", "blockdev", "kv", "layout", "sample"},
	"bench":    {"internal", "blockdev", "kv", "layout", "sample", "compute", "train"},
	"":         {"internal", "blockdev", "kv", "layout", "sample", "shell"},
	"serve":    {"", "internal", "blockdev", "kv", "layout", "sample", "train"},
	"cmd": {"", "internal", "blockdev", "kv", "layout", "sample", "compute", "train", "shell",
		"bench", "serve", "testdata"},
	"testdata": {},
}

// doors are the packages of a folder that another folder may import though the folder as a whole is
// closed to it.
var doors = map[string][]string{
	"shell": {"gdb/train/runs", "gdb/train/setting", "gdb/train/link/triples"},
	"serve": {"gdb/shell/lang", "gdb/shell/graph"},
}

// banned are calls that have a better way here. except lists path prefixes where they are fine; a
// line that ends with "//lint:KEY reason" is excused too.
var banned = []struct {
	key, do string
	re      *regexp.Regexp
	except  []string
}{
	{"wrap", "wrap with %w, so that errors.Is and errors.As keep working",
		regexp.MustCompile(`\bfmt\.Errorf\([^)]*%[vs]"?, err\)`), nil},
	{"exit", "return an error; only cmd/gdb/main.go ends the process",
		regexp.MustCompile(`\blog\.Fatal|\bos\.Exit\(`), []string{"cmd/gdb/main.go"}},
	{"flag", "take an Options struct; flags belong to cmd",
		regexp.MustCompile(`\bflag\.(Int|String|Bool|Duration)\(`), []string{"cmd/"}},
	{"os", "go through pebble's vfs.FS, so that crash tests see it",
		regexp.MustCompile(`\bos\.(Open|Create|OpenFile|Rename|Remove|RemoveAll|Mkdir|MkdirAll|` +
			`ReadFile|WriteFile|ReadDir|Stat)\(`),
		[]string{"cmd/", "blockdev/", "internal/mem/"}},
	{"todo", "write TODO(name): what, and when it is due",
		regexp.MustCompile(`//\s*TODO[^(]`), nil},
	{"program", "write message.Program for the name: it may have been built as another",
		regexp.MustCompile(`^[^/]*"[^"]*\bgdb (bench|check|completion|demo|embed|eval|help|info|` +
			`ingest|partition|plan|predict|report|runs|serve|shell|split|train)\b`),
		[]string{"cmd/gdb/"}},
	{"print", "write to a writer that the caller gives",
		regexp.MustCompile(`\bfmt\.Print(ln|f)?\(|^\s*println\(`), []string{"cmd/gdb/main.go"}},
}

func TestImportDirection(t *testing.T) {
	cmd := exec.Command("go", "list", "-e", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		from, _ := folder(f[0])
		allowed, known := layers[from]
		if !known {
			t.Errorf("%s: folder %q is not in layers of internal/lint: add it, or put the code "+
				"where it belongs", f[0], from)
			continue
		}
		for _, imp := range f[1:] {
			to, ours := folder(imp)
			if ours && to != from && !slices.Contains(allowed, to) &&
				!slices.Contains(doors[from], imp) {
				t.Errorf("%s must not import %s: %q may import %v; move the code down, or pass it "+
					"in from above", f[0], imp, from, allowed)
			}
		}
	}
}

// folder returns the top folder of an import path of this module ("" for the root package).
func folder(path string) (name string, ours bool) {
	if path == "gdb" {
		return "", true
	}
	rest, ok := strings.CutPrefix(path, "gdb/")
	if !ok {
		return "", false
	}
	top, _, _ := strings.Cut(rest, "/")
	return top, true
}

func TestSource(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root &&
			(d.Name() == "testdata" && !strings.HasSuffix(path, "../testdata") ||
				strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if !bytes.Contains(src, []byte("// Code generated")) {
			checkLines(t, filepath.ToSlash(rel), src)
			checkSyntax(t, filepath.ToSlash(rel), src)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkLines(t *testing.T, rel string, src []byte) {
	isTest, n := strings.HasSuffix(rel, "_test.go"), 0
	for line := range strings.Lines(string(src)) {
		n++
		line = strings.TrimRight(line, "\n")
		if w := len([]rune(strings.ReplaceAll(line, "\t", "    "))); w > lineWidthMax {
			t.Errorf("%s:%d: %d columns, limit %d: break the line", rel, n, w, lineWidthMax)
		}
		if isTest {
			continue
		}
		for _, b := range banned {
			excused := strings.Contains(line, "//lint:"+b.key+" ") ||
				slices.ContainsFunc(b.except, func(p string) bool {
					return strings.HasPrefix(rel,
						p)
				})
			if !excused && b.re.MatchString(line) {
				t.Errorf("%s:%d: %s", rel, n, b.do)
			}
		}
	}
	if !isTest && n > fileLinesMax {
		t.Errorf("%s: %d lines, limit %d: split it by responsibility", rel, n, fileLinesMax)
	}
}

// checkGoroutines finds goroutines whose panics are not caught: a function that is written where it
// is started begins with defer bug.Catch().
func checkGoroutines(t *testing.T, fset *token.FileSet, file *ast.File) {
	check := func(f *ast.FuncLit) {
		if d, ok := f.Body.List[0].(*ast.DeferStmt); ok && isSelector(d.Call.Fun, "Catch") {
			return
		}
		t.Errorf("%s: begin the goroutine with defer bug.Catch()", fset.Position(f.Pos()))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if f, ok := n.Call.Fun.(*ast.FuncLit); ok {
				check(f)
			}
		case *ast.CallExpr:
			if len(n.Args) == 1 && isSelector(n.Fun, "Go") {
				if f, ok := n.Args[0].(*ast.FuncLit); ok {
					check(f)
				}
			}
		}
		return true
	})
}

func isSelector(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name
}

func checkSyntax(t *testing.T, rel string, src []byte) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, rel, src, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	checkWords(t, fset, rel, file)
	isTest := strings.HasSuffix(rel, "_test.go")
	if !isTest && !strings.Contains(rel, "test/") && !strings.HasPrefix(rel, "bench/") {
		checkGoroutines(t, fset, file)
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			checkFunc(t, fset, rel, d, isTest)
		case *ast.GenDecl:
			if !isTest {
				checkTypes(t, fset, rel, d)
			}
		}
	}
}

func checkFunc(t *testing.T, fset *token.FileSet, rel string, fn *ast.FuncDecl, isTest bool) {
	pos := fset.Position(fn.Pos())
	n := fset.Position(fn.End()).Line - pos.Line + 1
	if n > funcLinesMax && !isTest && !strings.Contains(rawText(fn.Doc), "//lint:long ") {
		t.Errorf("%s:%d: %s has %d lines, limit %d: split it, or say why with //lint:long REASON",
			rel, pos.Line, fn.Name.Name, n, funcLinesMax)
	}
	count := 0
	for _, f := range fn.Type.Params.List {
		count += max(1, len(f.Names))
	}
	if count > paramsMax && !isTest &&
		!strings.Contains(rawText(fn.Doc), "//lint:parameters ") {
		t.Errorf("%s:%d: %s has %d parameters, limit %d: give it a struct, or say why with "+
			"//lint:parameters REASON", rel, pos.Line, fn.Name.Name, count, paramsMax)
	}
	if fn.Name.IsExported() && fn.Doc == nil && !isTest && exportedReceiver(fn) {
		t.Errorf("%s:%d: exported %s has no comment: say what it does, its units and its errors",
			rel, pos.Line, fn.Name.Name)
	}
}

func checkTypes(t *testing.T, fset *token.FileSet, rel string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		s, ok := spec.(*ast.TypeSpec)
		if ok && s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
			t.Errorf("%s:%d: exported type %s has no comment: say what it is and who owns it",
				rel, fset.Position(s.Pos()).Line, s.Name.Name)
		}
	}
}

// exportedReceiver says whether a function can be seen from outside: it has no receiver, or one of
// an exported type.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	name, ok := typ.(*ast.Ident)
	return !ok || name.IsExported()
}

// rawText is the text of a comment group with its directives, which Text leaves out.
func rawText(g *ast.CommentGroup) string {
	var b strings.Builder
	if g != nil {
		for _, c := range g.List {
			b.WriteString(c.Text + "\n")
		}
	}
	return b.String()
}
