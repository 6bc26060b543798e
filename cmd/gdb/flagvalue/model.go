package flagvalue

import (
	"fmt"
	"strconv"
	"strings"

	"gdb/train/setting"
)

// Hidden is the width of the hidden layers, or one of each.
type Hidden struct{ To *setting.Node }

// String is what was given.
func (h *Hidden) String() string {
	if h.To == nil || len(h.To.Widths) == 0 {
		if h.To == nil {
			return ""
		}
		return strconv.Itoa(h.To.Hidden)
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(h.To.Widths), " ", ","), "[]")
}

// Set takes a number, or several with commas between.
func (h *Hidden) Set(s string) error {
	var widths []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no width: give a number, or one for each hidden layer, such "+
				"as 256,128", part)
		}
		widths = append(widths, n)
	}
	h.To.Hidden, h.To.Widths = widths[0], nil
	if len(widths) > 1 {
		h.To.Widths = widths
	}
	return nil
}

// Type is shown in help.
func (h *Hidden) Type() string { return "widths" }

// Rate is a share that may be left out.
type Rate struct{ To **float64 }

// String is what was given.
func (r *Rate) String() string {
	if r.To == nil || *r.To == nil {
		return ""
	}
	return fmt.Sprint(**r.To)
}

// Set takes a number.
func (r *Rate) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%q is no share: give a number from 0 to below 1", s)
	}
	*r.To = &v
	return nil
}

// Type is shown in help.
func (r *Rate) Type() string { return "float" }

// Dropout is --dropout: auto or a share.
type Dropout float64

// String is the flag's value.
func (d *Dropout) String() string {
	if *d == setting.DropoutAuto {
		return "auto"
	}
	return strconv.FormatFloat(float64(*d), 'g', -1, 64)
}

// Set parses auto or a share; settings check what it may be.
func (d *Dropout) Set(text string) error {
	if text == "auto" {
		*d = setting.DropoutAuto
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v == setting.DropoutAuto {
		return fmt.Errorf("%q: want auto, or a number from 0 to below 1", text)
	}
	*d = Dropout(v)
	return nil
}

// Type names the value in help.
func (d *Dropout) Type() string { return "auto|SHARE" }
