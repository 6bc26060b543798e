package setting

import (
	"fmt"
	"reflect"
	"strings"
)

// Texts returns the settings that are recorded: their names in run.json and their values as flags
// take them, in the order of the table.
func Texts(c Settings) [][2]string { return texts(c, false) }

// SetTexts returns what Texts does, without what run.json leaves out and without empty texts.
func SetTexts(c Settings) [][2]string { return texts(c, true) }

func texts(c Settings, set bool) (all [][2]string) {
	of, paths := reflect.ValueOf(c).Elem(), c.task().paths()
	for _, r := range Rows {
		if r.For&c.task() == 0 {
			continue
		}
		for _, name := range r.names(c.task()) {
			path, ok := paths[name]
			if !ok {
				continue
			}
			f, tag := of.FieldByIndex(path), of.Type().FieldByIndex(path).Tag.Get("json")
			text := r.text(f, c)
			left := strings.HasSuffix(tag, ",omitempty") && f.IsZero() || text == ""
			if tag != "-" && !(set && left) {
				all = append(all, [2]string{name, text})
			}
		}
	}
	return all
}

// text returns a field as its flag takes it, or as people read it where no flag sets it.
func (r *Row) text(f reflect.Value, c Settings) string {
	v := plain([]any{f.Addr().Interface()})
	if len(r.Fields) == 0 {
		v = r.value(c)
	}
	switch {
	case f.Kind() == reflect.Pointer && f.IsNil():
		return "none"
	case v != nil:
		return v.String()
	}
	return fmt.Sprint(reflect.Indirect(f).Interface())
}
