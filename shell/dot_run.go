package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/shell/result"
	"gdb/shell/words"
)

func (s *session) dotMode(_ context.Context, arg string) error {
	if arg == "" {
		return s.note("mode is %s", s.mode())
	}
	if err := choice(arg, result.Modes); err != nil {
		return err
	}
	s.Mode = arg
	return nil
}

// note tells the user something that is not part of a result.
func (s *session) note(format string, args ...any) error {
	_, err := fmt.Fprintf(s.Err, format+"\n", args...)
	return err
}

func (s *session) dotRows(_ context.Context, arg string) error {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 0 {
		return dotUsagef("wants a number of rows, 0 for all; found %s", words.Quoted(arg))
	}
	s.rows = n
	return nil
}

func (s *session) dotTiming(_ context.Context, arg string) error {
	return s.toggle(&s.timing, arg)
}

func (s *session) dotBail(_ context.Context, arg string) error {
	return s.toggle(&s.bail, arg)
}

func (s *session) toggle(what *bool, arg string) error {
	err := choice(arg, onOff)
	if err == nil {
		*what = arg == "on"
	}
	return err
}

func (s *session) dotQuit(context.Context, string) error { return errQuit }

// dotLast runs the last statement again. The shell does not keep its result, which may be larger
// than the memory.
func (s *session) dotLast(ctx context.Context, _ string) error {
	if s.last == "" {
		return dotUsagef("has nothing to show: no statement has been run")
	}
	rows := s.rows
	s.rows = 0
	defer func() { s.rows = rows }()
	return s.execute(ctx, s.last)
}

func (s *session) dotOnce(_ context.Context, arg string) error {
	if arg == "" {
		return dotUsagef("wants the name of a file")
	}
	s.once = arg
	return nil
}

// ScriptBytes bounds the bytes of a file of statements, and of a statement that comes through a
// pipe.
const ScriptBytes = 16 << 20

// errLong says that a text is longer than ScriptBytes.
var errLong = fmt.Errorf("it is larger than %s: cut it into several", mem.FormatSize(ScriptBytes))

// scriptDepth bounds how deep files may read other files.
const scriptDepth = 16

func (s *session) dotRead(ctx context.Context, arg string) error {
	if arg == "" {
		return dotUsagef("wants the name of a file")
	}
	if s.depth == scriptDepth {
		return dotUsagef("stops: files read each other %d deep", scriptDepth)
	}
	f, err := files.Behind(s.Store.FS()).Open(arg)
	if err != nil {
		return fmt.Errorf("shell: .read: %w", err)
	}
	text, err := ReadScript(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("shell: .read %s: %w", arg, err)
	}
	s.depth++
	defer func() { s.depth-- }()
	return s.runText(ctx, text)
}

// ReadScript reads statements. It fails if they are longer than ScriptBytes.
func ReadScript(r io.Reader) (string, error) {
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(r, ScriptBytes+1))
	if err == nil && n > ScriptBytes {
		err = errLong
	}
	return text.String(), err
}

func (s *session) dotWatch(ctx context.Context, arg string) error {
	seconds, stmt, _ := strings.Cut(arg, " ")
	every, err := strconv.ParseFloat(seconds, 64)
	if err != nil || !(every > 0) || every > 1e6 || strings.TrimSpace(stmt) == "" {
		return dotUsagef("wants seconds and a statement, as in .watch 2 STATS IO;")
	}
	if _, rest, _ := nextItem(stmt); skipBlank(rest) != "" {
		return dotUsagef("takes one statement")
	}
	pager := s.pager
	s.pager = "off"
	defer func() { s.pager = pager }()
	return s.watch(ctx, max(time.Duration(every*1e9), 1), func() error {
		return s.execute(ctx, strings.TrimSpace(stmt))
	})
}

// watch runs a statement again and again until Ctrl-C or an error. every is the shortest time from
// one beginning to the next.
func (s *session) watch(ctx context.Context, every time.Duration, run func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := run()
		if err == nil {
			err = s.supervise(ctx, "", func(ctx context.Context, _ *watcher) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-tick.C:
					return nil
				}
			})
		}
		cancelled := errors.Is(err, context.Canceled) && !errors.Is(err, ErrAborted)
		if ctx.Err() == nil && (cancelled || err == nil && len(s.pressed) > 0) {
			s.pressed = nil
			return nil // Ctrl-C ends a watch, also when it came as a statement ended
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) dotPager(_ context.Context, arg string) error {
	err := choice(arg, pagerModes)
	if err == nil {
		s.pager = arg
	}
	return err
}

// dotEdit lets the user edit a statement and puts it into the line, to be looked at once more.
func (s *session) dotEdit(ctx context.Context, _ string) error {
	if s.Terminal == nil || s.Edit == nil {
		return dotUsagef("needs a terminal")
	}
	text, err := s.Edit(ctx, s.last)
	if err != nil {
		return fmt.Errorf("shell: .edit: %w", err)
	}
	s.draft = strings.TrimSpace(text)
	return nil
}

// historyShown is how many inputs .history shows without a number.
const historyShown = 20

func (s *session) dotHistory(ctx context.Context, arg string) error {
	n := historyShown
	if arg != "" {
		var err error
		if n, err = strconv.Atoi(arg); err != nil || n < 1 {
			return dotUsagef("wants a number of inputs; found %s", words.Quoted(arg))
		}
	}
	var rows [][]string
	for i := max(len(s.typed)-n, 0); i < len(s.typed); i++ {
		rows = append(rows, []string{strconv.Itoa(i + 1), s.typed[i]})
	}
	return s.table(ctx, []string{"number", "input"}, rows)
}

func (s *session) dotOpen(ctx context.Context, arg string) error {
	if arg == "" {
		return dotUsagef("wants the folder of a store")
	}
	st, err := layout.OpenLive(ctx, s.Store.FS(), arg)
	if err != nil {
		return fmt.Errorf("shell: .open: %w", err)
	}
	err = s.engine.Close()
	s.Store, s.engine = st, s.graph(st)
	return err
}

func (s *session) dotSettings(ctx context.Context, _ string) error {
	onOff := map[bool]string{true: "on", false: "off"}
	return s.table(ctx, []string{"name", "value"}, [][]string{
		{"store", s.Store.Path()}, {"mode", s.mode()}, {"rows", strconv.Itoa(s.rows)},
		{"timing", onOff[s.timing]}, {"pager", s.pager}, {"bail", onOff[s.bail]},
		{"seed", strconv.FormatUint(s.Seed, 10)}, {"memory", mem.FormatSize(s.Memory)},
	})
}

// table writes rows in the way of the result of a statement.
func (s *session) table(ctx context.Context, cols []string, rows [][]string) error {
	r := result.NewRenderer(s.mode(), s.Out, result.Box{Color: s.OutColor})
	if err := r.Header(cols); err != nil {
		return err
	}
	for _, row := range rows {
		vals := make([]any, len(row))
		for i, v := range row {
			vals[i] = v
		}
		if err := errors.Join(ctx.Err(), r.Row(vals)); err != nil {
			return err
		}
	}
	return r.Footer()
}
