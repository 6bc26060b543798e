// Package settingtext writes the settings of a run as their flags take them.
package settingtext

import (
	"fmt"
	"reflect"
	"strings"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/setting"
)

// Of returns all settings behind a pointer by their names in run.json, with embedded structs.
func Of(settings any) [][2]string {
	return rows(settings, func(string, reflect.Value) bool { return true })
}

// Set returns the settings that have a value: not what run.json leaves out, and no empty text.
func Set(settings any) [][2]string {
	return rows(settings, func(tag string, v reflect.Value) bool {
		text := fmt.Sprint(v.Interface())
		return !strings.HasSuffix(tag, ",omitempty") && text != "" && text != "<nil>" ||
			!v.IsZero() && text != ""
	})
}

// rows returns the settings that are wanted, by their tags and values.
func rows(settings any, wanted func(tag string, v reflect.Value) bool) (out [][2]string) {
	v := reflect.ValueOf(settings).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			out = append(out, rows(v.Field(i).Addr().Interface(), wanted)...)
			continue
		}
		tag := v.Type().Field(i).Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if name != "-" && wanted(tag, v.Field(i)) {
			out = append(out, [2]string{name, settingText(name, v.Field(i).Interface())})
		}
	}
	return out
}

// settingText is a setting as its flag takes it.
func settingText(name string, value any) string {
	text := fmt.Sprint(value)
	switch v := value.(type) {
	case []int:
		return sample.FormatFanout(v)
	case int64:
		switch {
		case v == setting.NeighborAuto && (name == "neighbor_cache" || name == "device_cache"),
			v == 0 && name == "feature_cache":
			return "auto"
		}
		return mem.FormatSize(v)
	case float64:
		if v == setting.DropoutAuto && name == "dropout" {
			return "auto"
		}
	case *int64:
		return valueText(v)
	case *uint64:
		return valueText(v)
	case *float64:
		return valueText(v)
	case int:
		if v == 0 && name == "superbatch" {
			return "auto"
		}
	}
	return text
}

// valueText is a number that may not be set.
func valueText[T any](v *T) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(*v)
}
