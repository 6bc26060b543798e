package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/atomicfile"
	"gdb/internal/codec"
)

const (
	// CheckpointKind names checkpoint files.
	CheckpointKind = "CKPT"
	// checkpointsKept are the newest checkpoints that stay. Each holds the best weights too.
	checkpointsKept = 2
	// CheckpointsMost are on the disk at once: another is written before an old one is removed.
	CheckpointsMost = checkpointsKept + 1
	// checkpointPrefix begins the names of directories of checkpoints.
	checkpointPrefix = "checkpoint-"
)

// ErrNoCheckpoint says that a run was stopped before its first checkpoint.
var ErrNoCheckpoint = errors.New("no checkpoint yet")

// WriteState writes the next checkpoint, makes it current and removes old ones. beside writes what
// the checkpoint has besides its state into its directory, before that is written; nil for nothing.
func (r Dir) WriteState(beside func(dir string) error, parts ...[]byte) error {
	numbers, err := r.Checkpoints()
	if err != nil {
		return err
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	name := checkpointPrefix + strconv.Itoa(next)
	if err := r.fs.MkdirAll(r.Path(name), 0o755); err != nil {
		return fmt.Errorf("train: make %s: %w", r.Path(name), err)
	}
	if beside != nil {
		if err := beside(r.Path(name)); err != nil {
			return err
		}
	}
	if err := atomicfile.Write(r.fs, r.Path(name, StateName), parts...); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if err := r.syncDir(r.dir); err != nil {
		return err
	}
	if err := r.replace(CurrentName, r.currentLine(name)); err != nil {
		return err
	}
	for i := range len(numbers) + 1 - checkpointsKept {
		old := r.Path(checkpointPrefix + strconv.Itoa(numbers[i]))
		if err := r.fs.RemoveAll(old); err != nil {
			return fmt.Errorf("train: remove %s: %w", old, err)
		}
	}
	return nil
}

// currentLine is what CURRENT holds.
func (r Dir) currentLine(name string) []byte {
	return fmt.Appendf(nil, "%s %08x\n", name,
		codec.BlockSum(CheckpointKind, r.uuid, 0, []byte(name)))
}

// Checkpoints lists the numbers of the checkpoints, whole or not, in ascending order.
func (r Dir) Checkpoints() ([]int, error) {
	names, err := r.fs.List(r.dir)
	if err != nil {
		return nil, fmt.Errorf("train: list %s: %w", r.dir, err)
	}
	var numbers []int
	for _, name := range names {
		if n, ok := checkpointNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// checkpointNumber is the number in the name of a checkpoint.
func checkpointNumber(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, checkpointPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == digits
}

// ReadState reads the current checkpoint, of at most limit bytes, and says by what name messages
// call
// it. Damage is a layout.CorruptionError. note is for the user: CURRENT was not there.
func (r Dir) ReadState(limit int64) (b []byte, file, note string, err error) {
	name, err := r.Current()
	if errors.Is(err, fs.ErrNotExist) {
		if name, err = r.newestWhole(); err == nil {
			note = fmt.Sprintf("run %s has no %s: %s, its newest checkpoint, is taken", r.name,
				CurrentName, name)
		}
	}
	if err != nil {
		return nil, "", "", err
	}
	file = name + "/" + StateName
	b, err = r.read(file, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", "", fmt.Errorf("train: run %s: %w", r.name,
			r.Corrupt(file, CurrentName+" names it, but it is missing"))
	}
	if err != nil {
		return nil, "", "", err
	}
	return b, file, note, nil
}

// Current reads the name of the current checkpoint.
func (r Dir) Current() (name string, err error) {
	line, err := r.read(CurrentName, currentBytesMax)
	if err != nil {
		return "", err
	}
	name, _, _ = strings.Cut(string(line), " ")
	if _, ok := checkpointNumber(name); !ok || string(line) != string(r.currentLine(name)) {
		return "", fmt.Errorf("train: run %s: %w", r.name,
			r.Corrupt(CurrentName, fmt.Sprintf("%q has another checksum", line)))
	}
	return name, nil
}

// newestWhole names the newest checkpoint that was written to its end, of a run whose CURRENT is
// not there: it was lost, or a crash came before the first one was written.
func (r Dir) newestWhole() (name string, err error) {
	numbers, err := r.Checkpoints()
	if err != nil {
		return "", err
	}
	for _, n := range slices.Backward(numbers) {
		name := checkpointPrefix + strconv.Itoa(n)
		_, err := r.fs.Stat(r.Path(name, StateName))
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", r.readError(name, err)
		}
	}
	return "", fmt.Errorf("train: run %s: %w", r.name, ErrNoCheckpoint)
}
