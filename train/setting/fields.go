package setting

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// nodePaths and linkPaths find the fields of Node and of Link by their names in run.json, or by the
// tag "setting" where they are not recorded.
var (
	nodePaths = sync.OnceValue(func() map[string][]int {
		return pathsOf(reflect.TypeFor[Node](), nil)
	})
	linkPaths = sync.OnceValue(func() map[string][]int {
		return pathsOf(reflect.TypeFor[Link](), nil)
	})
)

// paths returns where the fields of a task's settings are.
func (t Tasks) paths() map[string][]int {
	if t == OfLinks {
		return linkPaths()
	}
	return nodePaths()
}

// pathsOf lists the fields of a struct and of those that it embeds.
func pathsOf(t reflect.Type, at []int) map[string][]int {
	all := map[string][]int{}
	for i := range t.NumField() {
		f, path := t.Field(i), append(at[:len(at):len(at)], i)
		if f.Anonymous {
			for name, inner := range pathsOf(f.Type, path) {
				all[name] = inner
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			name = f.Tag.Get("setting")
		}
		if name != "" {
			all[name] = path
		}
	}
	return all
}

// Settings are the settings of a task: *Node or *Link.
type Settings interface{ task() Tasks }

func (c *Node) task() Tasks { return OfNodes }
func (c *Link) task() Tasks { return OfLinks }

// fields returns the fields that a row has in settings; none where their task has none.
func (r *Row) fields(c Settings) (all []reflect.Value) {
	paths := c.task().paths()
	for _, name := range r.names(c.task()) {
		if path, ok := paths[name]; ok {
			all = append(all, reflect.ValueOf(c).Elem().FieldByIndex(path))
		}
	}
	return all
}

// value returns the value of a row in settings; nil where their task has none, or no flag sets it.
func (r *Row) value(c Settings) Value {
	var to []any
	for _, f := range r.fields(c) {
		to = append(to, f.Addr().Interface())
	}
	if to == nil || r.For&c.task() == 0 {
		return nil
	}
	return r.kind(c.task())(to)
}

// fill sets all settings to their defaults.
func fill(c Settings) {
	for _, r := range Rows {
		v, text := r.value(c), r.byDefault(c.task())
		if v == nil || text == "" {
			continue
		}
		if err := v.Set(text); err != nil {
			panic("BUG: the default of --" + r.Name + ": " + err.Error())
		}
	}
}

// checkRows reports the first setting whose word is unknown, or whose number is out of bounds.
func checkRows(c Settings) error {
	t := c.task()
	for _, r := range Rows {
		all := r.fields(c)
		if r.For&t == 0 || len(all) == 0 {
			continue
		}
		f := all[0]
		if f.Kind() == reflect.String && !r.Any {
			if err := r.checkWord(f.String(), t); err != nil {
				return fmt.Errorf("train: %w", err)
			}
		}
		if want := r.check(t); want != nil && !want.fits(number(f)) {
			return fmt.Errorf("train: %s %v: give %s", r.Name, f.Interface(), want.want)
		}
	}
	return nil
}

// number returns a field of any type of numbers.
func number(f reflect.Value) float64 {
	if f.CanInt() {
		return float64(f.Int())
	}
	return f.Float()
}

// raw returns a value as messages show it. An empty word is shown as what it means.
func (r *Row) raw(c Settings) string {
	var parts []string
	for _, f := range r.fields(c) {
		text := fmt.Sprint(f.Interface())
		switch {
		case f.Kind() == reflect.Pointer && f.IsNil():
			text = "none"
		case f.Kind() == reflect.Pointer:
			text = fmt.Sprint(f.Elem().Interface())
		case len(parts) > 0 && f.IsZero():
			continue
		case text == "":
			text = r.Unset
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// StepName writes the settings that the time of a step, or of sampling, depends on: plans are kept
// under it.
func (c *Node) StepName() string {
	var b strings.Builder
	for _, r := range Rows {
		text := r.raw(c)
		switch r.InPlan {
		case PlanWhether:
			fmt.Fprintf(&b, "%s=%t ", r.Name, text != "0")
		case PlanValue:
			fmt.Fprintf(&b, "%s=%s ", r.Name, text)
		}
	}
	return b.String()
}

// sameRows reports the first setting of a run that is resumed which is not as it was.
func sameRows(now, was Settings, run string) error {
	for _, r := range Rows {
		kept := r.Free&now.task() == 0
		if node, is := now.(*Node); is && r.KeptIf != nil {
			kept = r.KeptIf(node)
		}
		if r.For&now.task() == 0 || !kept {
			continue
		}
		if a, b := r.raw(now), r.raw(was); a != b {
			return fmt.Errorf("train: resume %s with %s %s: it began with %s; leave the flag out, "+
				"or start a new run", run, r.Name, a, b)
		}
	}
	return nil
}

// SameBatches returns an error for the first setting by which the batches of two runs may differ.
func (c *Node) SameBatches(other *Node) error {
	for _, r := range Rows {
		if r.For&OfNodes == 0 || r.Beside || r.Free&OfNodes != 0 {
			continue
		}
		if a, b := r.raw(c), r.raw(other); a != b {
			return fmt.Errorf("%s is %s, and %s there", r.Name, a, b)
		}
	}
	return nil
}

// sameModel reports the first setting by which the weights of a run do not fit.
func sameModel(now, was Settings, run string) error {
	for _, r := range Rows {
		if r.For&now.task() == 0 || !r.Weights {
			continue
		}
		if a, b := r.raw(now), r.raw(was); a != b {
			return fmt.Errorf("train: --from-run %s: %s is %s here, and the weights of the run "+
				"are of a model with %s: leave the flag out, or train a run from the beginning",
				run, r.Name, a, b)
		}
	}
	return nil
}

// checkWord refuses a word that a task does not know.
func (r *Row) checkWord(word string, t Tasks) error {
	known := r.choices(t)
	if known == nil || slices.Contains(known, word) || word == "" && r.Unset != "" {
		return nil
	}
	if slices.Contains(r.Gone, word) {
		return fmt.Errorf("%s %s: %s", r.Name, word, r.Instead)
	}
	return fmt.Errorf("unknown %s %q: known are %s", r.Name, word, strings.Join(known, ", "))
}
