package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/layout"
)

const (
	// CheckpointKind names checkpoint files.
	CheckpointKind = "CKPT"
	// checkpointsKept is how many of the newest checkpoints stay. Each holds the best weights too.
	checkpointsKept = 2
	// CheckpointsMost is the most checkpoints that are on the disk at once: a new one is written
	// before an old one is removed.
	CheckpointsMost = checkpointsKept + 1
	// checkpointPrefix begins the names of directories of checkpoints.
	checkpointPrefix = "checkpoint-"
)

// ErrNoCheckpoint says that a run was stopped before its first checkpoint.
var ErrNoCheckpoint = errors.New("no checkpoint yet")

// WriteState writes the next checkpoint, makes it current and removes old ones. position is written
// as JSON. beside writes other files of the checkpoint into its directory, before the state is
// written; nil for none.
func (r Dir) WriteState(position any, arrays []Array, beside func(dir string) error) error {
	parts, err := encodeState(r.uuid, position, arrays)
	if err != nil {
		return err
	}
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
	if err := files.WriteAtomic(r.fs, r.Path(name, StateName), parts...); err != nil {
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

// currentLine returns the content of CURRENT.
func (r Dir) currentLine(name string) []byte {
	return fmt.Appendf(nil, "%s %08x\n", name,
		codec.BlockSum(CheckpointKind, r.uuid, 0, []byte(name)))
}

// Checkpoints lists the numbers of the checkpoints, damaged or not, in ascending order.
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

// HasCheckpoint reports whether the run was ever saved, so that it goes on from there.
func (r Dir) HasCheckpoint() bool {
	all, err := r.Checkpoints()
	return err != nil || len(all) > 0
}

// checkpointNumber returns the number in the name of a checkpoint.
func checkpointNumber(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, checkpointPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == digits
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

// Whole calls read with the name of the current checkpoint and, if that is damaged, with those of
// the others, the newest first, until read finds one that is not. It returns the checkpoint's name,
// and a note that tells the user why it is not the current one.
func (r Dir) Whole(read func(checkpoint string) error) (name, note string, err error) {
	name, err = r.readCurrent(read)
	if err == nil || !isDamage(err) {
		return name, "", err
	}
	numbers, failed := r.Checkpoints()
	if failed != nil {
		return "", "", failed
	}
	lost := name == "" && errors.Is(err, fs.ErrNotExist) // there is no CURRENT
	for _, n := range slices.Backward(numbers) {
		other := checkpointPrefix + strconv.Itoa(n)
		if other == name {
			continue
		}
		switch failed := read(other); {
		case failed == nil && lost:
			return other, fmt.Sprintf("run %s has no %s: %s, its newest checkpoint, is taken",
				r.name, CurrentName, other), nil
		case failed == nil:
			return other, fmt.Sprintf("run %s: %s: %s is taken", r.name, damageOf(err), other), nil
		case !isDamage(failed):
			return "", "", failed
		case lost && !errors.Is(failed, fs.ErrNotExist): // it was written to its end
			lost, err = false, failed
		}
	}
	if lost {
		err = fmt.Errorf("train: run %s: %w", r.name, ErrNoCheckpoint)
	}
	return "", "", err
}

// readCurrent calls read with the current checkpoint. A training that goes on may remove the
// checkpoint that CURRENT named a moment ago; so if it is missing or was overwritten, CURRENT
// is read again.
func (r Dir) readCurrent(read func(checkpoint string) error) (name string, err error) {
	const tries = 3
	for range tries {
		if name, err = r.Current(); err != nil {
			return "", err
		}
		if err = read(name); err == nil || !isDamage(err) {
			return name, err
		}
		if now, err := r.Current(); err != nil || now == name {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("train: run %s: %w", r.name,
			r.Corrupt(name+"/"+StateName, CurrentName+" names it, but it is missing"))
	}
	return name, err
}

// isDamage reports whether an error says that bytes differ from those that were written, or that
// the disk cannot read them, so that another checkpoint may be better.
func isDamage(err error) bool {
	return errors.Is(err, layout.ErrCorrupt) || errors.Is(err, files.ErrRefused) ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOTDIR)
}

// damageOf says which file is damaged, without what to do about it.
func damageOf(err error) string {
	var bad *layout.CorruptionError
	if !errors.As(err, &bad) {
		return err.Error()
	}
	what, _, _ := strings.Cut(bad.What, restoreAdvice)
	return fmt.Sprintf("%s is damaged (%s)", bad.Path, what)
}

// GoOn makes a checkpoint the current one, from which a run goes on, and removes those after it,
// which are all damaged.
func (r Dir) GoOn(checkpoint string) error {
	from, ok := checkpointNumber(checkpoint)
	numbers, err := r.Checkpoints()
	if err != nil || !ok {
		return err
	}
	if err := r.replace(CurrentName, r.currentLine(checkpoint)); err != nil {
		return err
	}
	for _, n := range numbers {
		if n <= from {
			continue
		}
		after := r.Path(checkpointPrefix + strconv.Itoa(n))
		if err := r.fs.RemoveAll(after); err != nil {
			return fmt.Errorf("train: remove %s: %w", after, err)
		}
	}
	return nil
}
