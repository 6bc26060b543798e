package bench

import (
	"fmt"
	"math"
	"strings"
)

// A chart is drawn as SVG text by hand: bars and lines with axes and a legend are all that the
// comparisons need, and a plotting module with its fonts would be a tenth of the program.
const (
	chartWidth, chartHeight = 760.0, 440.0
	chartLeft, chartRight   = 84.0, 170.0 // the legend is on the right
	chartTop, chartBottom   = 48.0, 64.0
	chartTicks              = 5
)

// chartColors tell series apart in print and for most color-blind readers.
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
	d.text(chartLeft, 38, "start", note, ` fill="#555"`)
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

// niceStep is the least of 1, 2 or 5 times a power of ten that is at least v.
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

// y is where a value is drawn.
func (d *drawing) y(v float64) float64 {
	return chartHeight - chartBottom - v/d.yMax*(chartHeight-chartTop-chartBottom)
}

// text writes s, which may be anything, at a place.
func (d *drawing) text(x, y float64, anchor, s, attributes string) {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
	fmt.Fprintf(&d.b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor,
		attributes, s)
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
		fmt.Fprintf(&d.b, `<rect x="%.1f" y="%.1f" width="12" height="12" fill="%s"/>`+"\n", x, y,
			color(i))
		d.text(x+18, y+11, "start", name, "")
	}
}

func color(i int) string { return chartColors[i%len(chartColors)] }

// end is the whole SVG.
func (d *drawing) end() []byte { return []byte(d.b.String() + "</svg>\n") }

// barChart has a bar for each group, of parts on top of each other, and a mark across each bar
// where marks has a number.
type barChart struct {
	title, note, yLabel string
	groups, parts       []string
	values              [][]float64 // by group and part
	marks               []float64   // by group; NaN for none
}

func (c *barChart) svg() []byte {
	most := 0.0
	for i, g := range c.values {
		sum := 0.0
		for _, v := range g {
			sum += v
		}
		most = math.Max(most, sum)
		if !math.IsNaN(c.marks[i]) {
			most = math.Max(most, c.marks[i])
		}
	}
	d := newDrawing(c.title, c.note, c.yLabel, most)
	slot := (chartWidth - chartLeft - chartRight) / float64(len(c.groups))
	for i, name := range c.groups {
		x, width, at := chartLeft+slot*(float64(i)+0.2), slot*0.6, 0.0
		for k, v := range c.values[i] {
			d.box(x, width, at, at+v, color(k))
			at += v
		}
		if m := c.marks[i]; !math.IsNaN(m) {
			fmt.Fprintf(&d.b, `<path d="M%.1f %.1fh%.1f" stroke="black" stroke-width="3"/>`+"\n",
				x-slot*0.1, d.y(m), slot*0.8)
			d.text(x+width/2, d.y(m)-5, "middle", fmt.Sprintf("%.3g", m), "")
		}
		d.text(x+width/2, chartHeight-chartBottom+18, "middle", name, "")
	}
	d.legend(c.parts)
	return d.end()
}

// lineChart has a line for each series over places on the x axis that are as far apart as they
// are in order: sizes double from one to the next.
type lineChart struct {
	title, note, xLabel, yLabel string
	places, series              []string
	values                      [][]float64 // by series and place; NaN where there is none
}

func (c *lineChart) svg() []byte {
	most := 0.0
	for _, s := range c.values {
		for _, v := range s {
			if !math.IsNaN(v) {
				most = math.Max(most, v)
			}
		}
	}
	d := newDrawing(c.title, c.note, c.yLabel, most)
	slot := (chartWidth - chartLeft - chartRight) / float64(len(c.places))
	x := func(i int) float64 { return chartLeft + slot*(float64(i)+0.5) }
	for i, name := range c.places {
		d.text(x(i), chartHeight-chartBottom+18, "middle", name, "")
	}
	d.text(chartLeft+slot*float64(len(c.places))/2, chartHeight-chartBottom+42, "middle", c.xLabel,
		"")
	for k, s := range c.values {
		path, pen := "", "M"
		for i, v := range s {
			if math.IsNaN(v) {
				pen = "M" // a gap, not a line across it
				continue
			}
			path += fmt.Sprintf("%s%.1f %.1f", pen, x(i), d.y(v))
			pen = "L"
			fmt.Fprintf(&d.b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x(i), d.y(v),
				color(k))
		}
		fmt.Fprintf(&d.b, `<path d="%s" stroke="%s" stroke-width="2" fill="none"/>`+"\n", path,
			color(k))
	}
	d.legend(c.series)
	return d.end()
}
