// Package chart draws bar and line charts as SVG text.
package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// labelsMost bounds the places that have labels, and marksMost those that have marks.
const labelsMost, marksMost = 12, 60

// A chart is drawn as SVG text by hand: bars and lines with axes and a legend are all that the
// comparisons need, and a plotting module with its fonts would be a tenth of the program.
const (
	chartWidth, chartHeight = 800.0, 460.0
	chartLeft, chartRight   = 84.0, 170.0 // the legend is on the right
	chartTop, chartBottom   = 64.0, 72.0
	chartTicks              = 5
)

// chartColors are colors that differ in print and for most color-blind readers.
var chartColors = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
	"#999999", "#000000"}

// drawing collects the elements of a chart.
type drawing struct {
	b    strings.Builder
	yMax float64
}

// newDrawing begins a chart whose values go from 0 to yMax.
func newDrawing(title, note, yLabel string, yMax float64) *drawing {
	d := &drawing{}
	step := niceStep(yMax / chartTicks)
	d.yMax = math.Max(step, math.Ceil(yMax/step)*step)
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="13">`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&d.b, `<rect width="%g" height="%g" fill="white"/>`+"\n", chartWidth, chartHeight)
	d.text(chartLeft, 22, "start", title, ` font-size="16"`)
	d.text(chartLeft, 41, "start", note, ` fill="#555"`)
	for v := 0.0; v <= d.yMax+step/2; v += step {
		y := d.y(v)
		fmt.Fprintf(&d.b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/>`+"\n", chartLeft, y,
			chartWidth-chartRight)
		d.text(chartLeft-6, y+4, "end", fmt.Sprintf("%.6g", v), "")
	}
	middle := (chartTop + chartHeight - chartBottom) / 2
	d.text(18, middle, "middle", yLabel, fmt.Sprintf(` transform="rotate(-90 18 %g)"`, middle))
	return d
}

// niceStep returns the least of 1, 2 or 5 times a power of ten that is at least v.
func niceStep(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*p >= v*(1-1e-9) {
			return f * p
		}
	}
	return 10 * p
}

// y returns the height at which a value is drawn.
func (d *drawing) y(v float64) float64 {
	return chartHeight - chartBottom - v/d.yMax*(chartHeight-chartTop-chartBottom)
}

// text writes s, with special characters escaped, at a place.
func (d *drawing) text(x, y float64, anchor, s, attributes string) {
	fmt.Fprintf(&d.b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor,
		attributes, escaped(s))
}

// box draws a rectangle from value lo to hi.
func (d *drawing) box(x, width, lo, hi float64, color string) {
	fmt.Fprintf(&d.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x,
		d.y(hi), width, d.y(lo)-d.y(hi), color)
}

// legend names the series.
func (d *drawing) legend(names []string) {
	for i, name := range names {
		x, y := chartWidth-chartRight+16, chartTop+20*float64(i)
		fmt.Fprintf(&d.b, `<path d="M%.1f %.1fh20" stroke="%s" stroke-width="12"%s/>`+"\n", x, y+6,
			Color(i), dash(i))
		d.text(x+26, y+11, "start", name, "")
	}
}

// Color returns the color of series i of a picture.
func Color(i int) string { return chartColors[i%len(chartColors)] }

// dash returns the attribute that makes series i dashed if an earlier series has the same color.
func dash(i int) string {
	if i < len(chartColors) {
		return ""
	}
	return ` stroke-dasharray="5 3"`
}

// end returns the whole SVG.
func (d *drawing) end() []byte { return []byte(d.b.String() + "</svg>\n") }

// Bars is a chart with a bar for each group; a bar has its parts on top of each other.
type Bars struct {
	Title, Note, YLabel, Foot string
	Groups, Parts             []string
	Values                    [][]float64 // by group and part
	Sums                      []float64   // numbers written over the bars; NaN for failed
}

// SVG returns the chart.
func (c *Bars) SVG() []byte {
	most, used := 0.0, make([]float64, len(c.Parts))
	for _, g := range c.Values {
		sum := 0.0
		for k, v := range g {
			sum += v
			used[k] += v
		}
		most = math.Max(most, sum)
	}
	d := newDrawing(c.Title, c.Note, c.YLabel, most)
	slot := (chartWidth - chartLeft - chartRight) / float64(len(c.Groups))
	for i, name := range c.Groups {
		x, width, at := chartLeft+slot*(float64(i)+0.2), slot*0.6, 0.0
		for k, v := range c.Values[i] {
			d.box(x, width, at, at+v, Color(k))
			at += v
		}
		label := fmt.Sprintf("%.3g", c.Sums[i])
		if math.IsNaN(c.Sums[i]) {
			label = "failed"
		}
		d.text(x+width/2, d.y(at)-5, "middle", label, "")
		d.text(x+width/2, chartHeight-chartBottom+20, "middle", name, "")
	}
	d.text(chartLeft, chartHeight-16, "start", c.Foot, ` fill="#555"`)
	shown := slices.Clone(c.Parts)
	for k := range shown {
		if used[k] == 0 {
			shown[k] += " (none)"
		}
	}
	d.legend(shown)
	return d.end()
}

// Lines is a chart with a line for each series. Places on the x axis are equally far apart, as for
// sizes that double from one to the next.
type Lines struct {
	Title, Note, XLabel, YLabel string
	Most                        float64 // end of the y axis; 0 for what the values need
	Places, Series              []string
	Values                      [][]float64 // by series and place; NaN where there is none
}

// Add sets the value of a series at a place, either of which may be new.
func (c *Lines) Add(series, place string, v float64) {
	at := slices.Index(c.Places, place)
	if at < 0 {
		at = len(c.Places)
		c.Places = append(c.Places, place)
		for k := range c.Values {
			c.Values[k] = append(c.Values[k], math.NaN())
		}
	}
	k := slices.Index(c.Series, series)
	if k < 0 {
		k = len(c.Series)
		c.Series = append(c.Series, series)
		c.Values = append(c.Values, slices.Repeat([]float64{math.NaN()}, len(c.Places)))
	}
	c.Values[k][at] = v
}

// SVG returns the chart.
func (c *Lines) SVG() []byte {
	most := c.Most
	for _, s := range c.Values {
		for _, v := range s {
			if !math.IsNaN(v) {
				most = math.Max(most, v)
			}
		}
	}
	d := newDrawing(c.Title, c.Note, c.YLabel, most)
	slot := (chartWidth - chartLeft - chartRight) / float64(len(c.Places))
	x := func(i int) float64 { return chartLeft + slot*(float64(i)+0.5) }
	every := (len(c.Places) + labelsMost - 1) / labelsMost
	for i, name := range c.Places {
		if i%max(1, every) == 0 {
			d.text(x(i), chartHeight-chartBottom+20, "middle", name, "")
		}
	}
	d.text(chartLeft+slot*float64(len(c.Places))/2, chartHeight-chartBottom+42, "middle", c.XLabel,
		"")
	names, gaps := slices.Clone(c.Series), false
	for k, s := range c.Values {
		if !HasNumber(s) {
			names[k] += " (unknown)" // its color stays the same in all pictures
			continue
		}
		path, pen := "", "M"
		for i, v := range s {
			if math.IsNaN(v) {
				pen, gaps = "M", true // a gap, not a line across it
				continue
			}
			path += fmt.Sprintf("%s%.1f %.1f", pen, x(i), d.y(v))
			pen = "L"
			if len(c.Places) > marksMost {
				continue
			}
			// Series at the same place stay seen: the later, the smaller.
			fmt.Fprintf(&d.b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`+"\n", x(i), d.y(v),
				3+3*float64(len(c.Values)-1-k)/float64(len(c.Values)), Color(k))
		}
		fmt.Fprintf(&d.b, `<path d="%s" stroke="%s" stroke-width="2" fill="none"%s/>`+"\n", path,
			Color(k), dash(k))
	}
	if gaps {
		d.text(chartLeft, chartHeight-10, "start", "no mark: failed or refused there",
			` fill="#555"`)
	}
	d.legend(names)
	return d.end()
}

// Known reports whether any series has a number to draw.
func (c *Lines) Known() bool { return slices.ContainsFunc(c.Values, HasNumber) }

// HasNumber reports whether any of the values is a number.
func HasNumber(values []float64) bool {
	return slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) })
}
