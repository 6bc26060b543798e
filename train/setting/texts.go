package setting

import (
	"fmt"
	"reflect"
	"strings"
)

// Texts returns the settings behind a pointer to Node or Link that are recorded: their names in
// run.json and their values as flags take them, in the order of the table.
func Texts(settings any) [][2]string { return texts(settings, false) }

// SetTexts returns what Texts does, without what run.json leaves out and without empty texts.
func SetTexts(settings any) [][2]string { return texts(settings, true) }

func texts(settings any, set bool) (all [][2]string) {
	t := OfNodes
	if _, ok := settings.(*Link); ok {
		t = OfLinks
	}
	of := structOf(settings)
	for _, r := range Rows {
		if r.For&t == 0 {
			continue
		}
		for _, name := range append([]string{r.field(t)}, r.Fields...) {
			path, ok := t.paths()[name]
			if !ok {
				continue
			}
			f, tag := of.FieldByIndex(path), of.Type().FieldByIndex(path).Tag.Get("json")
			text := r.text(f, settings, t)
			left := strings.HasSuffix(tag, ",omitempty") && f.IsZero() || text == ""
			if tag != "-" && !(set && left) {
				all = append(all, [2]string{name, text})
			}
		}
	}
	return all
}

// text returns a field as its flag takes it, or as people read it where no flag sets it.
func (r *Row) text(f reflect.Value, settings any, t Tasks) string {
	v := plain([]any{f.Addr().Interface()})
	if len(r.Fields) == 0 {
		v = r.value(settings, t)
	}
	number := f.Kind() == reflect.Pointer && f.Type().Elem().Kind() != reflect.Struct
	switch {
	case number && f.IsNil():
		return "none"
	case number:
		return fmt.Sprint(f.Elem().Interface())
	case v == nil:
		return fmt.Sprint(f.Interface())
	}
	return v.String()
}
