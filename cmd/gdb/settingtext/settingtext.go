// Package settingtext writes the settings of a run as their flags take them.
package settingtext

import (
	"fmt"
	"reflect"
	"strings"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/runs"
)

// Of are the settings behind a pointer by their names in run.json, those of embedded structs too.
func Of(settings any) (out [][2]string) {
	v := reflect.ValueOf(settings).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			out = append(out, Of(v.Field(i).Addr().Interface())...)
			continue
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "-" {
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
		case v == runs.NeighborAuto && name == "neighbor_cache", v == 0 && name == "feature_cache":
			return "auto"
		}
		return mem.FormatSize(v)
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
