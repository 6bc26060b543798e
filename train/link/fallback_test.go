package link

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/runs"
)

// cloned copies arrays: a vfs.File may change what is written to it.
func cloned(arrays []runs.Array) (all []runs.Array) {
	for _, a := range arrays {
		all = append(all, runs.Array{Name: a.Name, Values: slices.Clone(a.Values)})
	}
	return all
}

// TestDamagedLastCheckpoint: where the state of the last checkpoint is damaged the one before is
// taken and named, with vectors in memory, in files of partitions, and in those of an encoder.
func TestDamagedLastCheckpoint(t *testing.T) {
	encoded := circleConfig("distmult")
	encoded.Encoder, encoded.Fanout = "sage", "3"
	for name, c := range map[string]Config{"memory": circleConfig("distmult"),
		"disk": diskConfig("distmult"), "encoder": encoded} {
		t.Run(name, func(t *testing.T) {
			s := mustCircle(t, true)
			c.Epochs, c.EvalEvery = 3, 1
			mustRun(t, s, c)
			dir := runs.Open(s, c.Run)
			want, older := lastRows(t, s, c.Run), mustCurrent(t, dir)
			// Another checkpoint of the same vectors: those on disk have no other that is whole.
			var at json.RawMessage
			arrays, err := dir.ReadState(older, 1<<24, &at)
			if err == nil {
				err = dir.WriteState(at, cloned(arrays), nil)
			}
			newer := mustCurrent(t, dir)
			if err != nil || newer == older {
				t.Fatal(newer, err)
			}
			path := dir.Path(newer, runs.StateName)
			layouttest.Rewrite(t, s.FS(), path, func(b []byte) []byte {
				b[40] ^= 8
				return b
			})
			if tr := mustTrained(t, s, c.Run); !strings.Contains(tr.Note, older+" is taken") {
				t.Errorf("opened with the note %q", tr.Note)
			}
			next, note := c, ""
			next.Resume = c.Run
			if _, err := Run(t.Context(), s, mustDevice(t), next, nil); err != nil {
				t.Error(err)
			}
			if now := mustCurrent(t, dir); now != older {
				t.Errorf("it went on from %s, want %s", now, older)
			}
			sameRows(t, name, want, lastRows(t, s, c.Run))
			if err := dir.WriteState(at, cloned(arrays), nil); err != nil {
				t.Fatal(err)
			}
			layouttest.Rewrite(t, s.FS(), path, func(b []byte) []byte { return b[:100] })
			next.Epochs++
			_, err = Run(t.Context(), s, mustDevice(t), next, func(e run.Event) {
				if e.Started != nil {
					note = e.Started.Note
				}
			})
			if err != nil || !strings.Contains(note, older+" is taken") {
				t.Errorf("resumed: %v, with note %q", err, note)
			}
		})
	}
}

// TestDamagedOnDisk: with vectors on disk a checkpoint before the last is whole only while its
// files are there; without them the damage of the last one is said, and nothing is removed.
func TestDamagedOnDisk(t *testing.T) {
	s, c := mustCircle(t, true), diskConfig("distmult")
	c.Epochs = 2
	mustRun(t, s, c)
	dir := runs.Open(s, c.Run)
	c.Resume, c.Epochs = c.Run, 4
	mustRun(t, s, c)
	name := mustCurrent(t, dir)
	layouttest.Rewrite(t, s.FS(), dir.Path(name, runs.StateName), func(b []byte) []byte {
		b[200] ^= 1
		return b
	})
	parts, err := s.FS().List(dir.Path(runs.PartitionsDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range parts {
		if err := s.FS().Remove(dir.Path(runs.PartitionsDir, file)); err != nil {
			t.Fatal(err)
		}
	}
	numbers, err := dir.Checkpoints()
	if err != nil || len(numbers) < 2 {
		t.Fatal(numbers, err)
	}
	_, err = Run(t.Context(), s, mustDevice(t), c, nil)
	if !errors.Is(err, layout.ErrCorrupt) || !strings.Contains(err.Error(), name) {
		t.Errorf("resumed: %v", err)
	}
	if again, err := dir.Checkpoints(); err != nil || !slices.Equal(again, numbers) {
		t.Errorf("checkpoints %v, before %v: %v", again, numbers, err)
	}
}

func mustCurrent(t *testing.T, dir runs.Dir) string {
	t.Helper()
	name, err := dir.Current()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
