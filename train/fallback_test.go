package train

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/embedding"
	"gdb/train/run"
	"gdb/train/runs"

	"github.com/RoaringBitmap/roaring/v2"
)

// runFiles reads the files of a run, by their paths.
func runFiles(t *testing.T, s *layout.Store, dir string) map[string][]byte {
	t.Helper()
	names, err := s.FS().List(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		path := s.FS().PathJoin(dir, name)
		info, err := s.FS().Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			maps.Copy(files, runFiles(t, s, path))
			continue
		}
		if files[path], err = readAll(s.FS(), path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// putRun makes a run of such files.
func putRun(t *testing.T, s *layout.Store, dir runs.Dir, files map[string][]byte) {
	t.Helper()
	if err := s.FS().RemoveAll(dir.Path()); err != nil {
		t.Fatal(err)
	}
	for path, b := range files {
		err := s.FS().MkdirAll(s.FS().PathDir(path), 0o755)
		if err = errors.Join(err, writeSynced(s.FS(), path, slices.Clone(b))); err != nil {
			t.Fatal(err)
		}
	}
}

// evaluateNoted evaluates a run, and returns what its user is told.
func evaluateNoted(t *testing.T, s *layout.Store, name string) (value float64, notes []string) {
	t.Helper()
	res, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: name,
		Limits: Limits{Notes: func(note string) { notes = append(notes, note) }}})
	if err != nil {
		t.Fatal(err)
	}
	return res.Value, notes
}

// TestDamagedLastCheckpoint: where the last checkpoint is damaged in any way the one before is
// taken and named, by eval and by a run that goes on, which ends as if nothing had been; where
// CURRENT is, the last one.
func TestDamagedLastCheckpoint(t *testing.T) {
	vectors, rows := vectorsConfig(), resumeConfig()
	for name, c := range map[string]struct {
		graph  layouttest.Graph
		config Config
		file   string // another of a checkpoint
	}{"features": {planted(false), rows, ""}, "vectors": {bare(), vectors, embedding.FileName}} {
		t.Run(name, func(t *testing.T) {
			whole := mustBuild(t, c.graph)
			mustRun(t, whole, c.config)
			want, weights := finalState(t, whole, c.config.Run)

			s, name := mustBuild(t, c.graph), c.config.Run
			first := c.config
			first.Epochs = 2
			mustRun(t, s, first)
			before, _ := evaluateNoted(t, s, name)
			dir := runs.Open(s, name)
			older, err := dir.Current()
			if err != nil {
				t.Fatal(err)
			}
			first.Epochs, first.Resume = 3, name
			mustRun(t, s, first)
			after, notes := evaluateNoted(t, s, name)
			newer, err := dir.Current()
			if err != nil || newer == older || len(notes) > 0 {
				t.Fatal(newer, notes, err)
			}
			files := runFiles(t, s, dir.Path())
			state, current := dir.Path(newer, runs.StateName), dir.Path(runs.CurrentName)
			flipped := func(path string, at int) func(map[string][]byte) {
				return func(files map[string][]byte) {
					b := slices.Clone(files[path])
					b[(at+len(b))%len(b)] ^= 4
					files[path] = b
				}
			}
			cases := map[string]func(map[string][]byte){
				"a bit of the header": flipped(state, 40), "a bit of an array": flipped(state, -9),
				"empty": func(f map[string][]byte) { f[state] = nil },
				"cut":   func(f map[string][]byte) { f[state] = f[state][:5000] },
				"longer": func(f map[string][]byte) {
					f[state] = append(slices.Clone(f[state]), 0)
				},
				"missing": func(f map[string][]byte) { delete(f, state) },
				"CURRENT": flipped(current, 3), "CURRENT empty": func(f map[string][]byte) {
					f[current] = nil
				}}
			if c.file != "" {
				cases["a bit of the vectors"] = flipped(dir.Path(newer, c.file), -1)
			}
			for what, damage := range cases {
				bad := maps.Clone(files)
				damage(bad)
				putRun(t, s, dir, bad)
				taken, value := older, before
				if strings.HasPrefix(what, "CURRENT") {
					taken, value = newer, after
				}
				got, notes := evaluateNoted(t, s, name)
				told := len(notes) == 1 && strings.Contains(notes[0], taken+" is taken")
				if !told || got != value {
					t.Errorf("%s: evaluated to %v, want %v, with notes %q", what, got, value, notes)
				}
				next, note := c.config, ""
				next.Resume = name
				if _, err := Run(t.Context(), s, mustDevice(t), next, func(e run.Event) {
					if e.Started != nil {
						note = e.Started.Note
					}
				}); err != nil || !strings.Contains(note, taken+" is taken") {
					t.Errorf("%s: resumed: %v, with note %q", what, err, note)
				}
				checkFinal(t, s, c.config, want, weights)
				numbers, err := dir.Checkpoints()
				if err != nil || len(numbers) == 0 {
					t.Fatal(numbers, err)
				}
				if _, notes := evaluateNoted(t, s, name); len(notes) > 0 {
					t.Errorf("%s: afterwards: %q", what, notes)
				}
			}
		})
	}
}

// TestReplacedSplits: a run does not go on with other splits than it began with, and who evaluates
// it is told; with its own again it goes on, as does one whose checkpoint does not say which it
// had.
func TestReplacedSplits(t *testing.T) {
	s, c := mustBuild(t, planted(false)), resumeConfig()
	c.Epochs = 2
	mustRun(t, s, c)
	own, err := s.Splits(t.Context(), runs.SetNames...)
	if err != nil {
		t.Fatal(err)
	}
	put := func(sets map[string]*roaring.Bitmap) {
		t.Helper()
		err := s.Catalog().PutSplits(t.Context(), sets)
		if err == nil {
			s, err = layout.Open(t.Context(), s.FS(), s.Dir())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	resume := func() error {
		next := c
		next.Epochs, next.Resume = c.Epochs+1, c.Run
		_, err := Run(t.Context(), s, mustDevice(t), next, nil)
		return err
	}
	moved := map[string]*roaring.Bitmap{"train": own["train"].Clone(), "val": own["val"],
		"test": own["test"].Clone()}
	from, to := own["train"].Minimum(), own["test"].Minimum()
	moved["train"].Remove(from)
	moved["train"].Add(to)
	moved["test"].Remove(to)
	moved["test"].Add(from) // as many as before
	smaller := map[string]*roaring.Bitmap{"train": own["train"].Clone(), "val": own["val"],
		"test": own["test"]}
	smaller["train"].Remove(from)
	for what, sets := range map[string]map[string]*roaring.Bitmap{"others": moved,
		"and has": smaller} {
		put(sets)
		if err := resume(); err == nil || errors.Is(err, layout.ErrCorrupt) ||
			!strings.Contains(err.Error(), "other splits") || !strings.Contains(err.Error(), what) {
			t.Errorf("resumed with other splits: %v, want %q", err, what)
		}
		if _, notes := evaluateNoted(t, s, c.Run); len(notes) != 1 ||
			!strings.Contains(notes[0], "other splits") || !strings.Contains(notes[0], what) {
			t.Errorf("evaluated with other splits: %q, want %q", notes, what)
		}
	}
	put(own)
	if err := resume(); err != nil {
		t.Errorf("resumed with its own splits: %v", err)
	}
	dir := runs.Open(s, c.Run)
	old, err := currentCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	old.pos.Sets, old.pos.Done = nil, false // as they were before
	if err := dir.WriteState(old.pos, old.arrays, nil); err != nil {
		t.Fatal(err)
	}
	put(smaller)
	if _, notes := evaluateNoted(t, s, c.Run); len(notes) > 0 {
		t.Errorf("a checkpoint without sets: %q", notes)
	}
	c.Epochs++
	if err := resume(); err != nil {
		t.Errorf("resumed a checkpoint without sets: %v", err)
	}
}
