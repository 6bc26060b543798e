package chart

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	curvesWidth, curvesHeight  = 800.0, 300.0
	curvesLeft, curvesRight    = 64.0, 14.0
	curvesTop, curvesBottom    = 52.0, 40.0
	curvesLetter               = 7.5 // width of a letter in the legend
	curvesTicksX, curvesTicksY = 10, 5
	curvesMarksMost            = 60 // marks of a series, which tell it from others without colors
	curvesDot                  = 2.8
	curvesMarkText             = 4.0
	curvesInk, curvesGrid      = "currentColor", "var(--grid, #ddd)"
)

// Curve is a series of a picture of curves: Y has a value for each number in X, which ascends, or
// NaN for no value. A curve without points keeps its color from others, and is not in the legend.
type Curve struct {
	Name string
	X, Y []float64
}

// Curves is a chart with a line for each series over numbers, such as a score over epochs. Both
// axes span just what is drawn, and the legend is above, so that curves have the whole width. It
// takes its colors from the page around it, if that sets color and --grid.
type Curves struct {
	Title, XLabel, YLabel string
	All                   []Curve
	// Fractions lets the x axis have lines between whole numbers.
	Fractions bool
	// Mark is a place on the x axis that gets a line and the word MarkWord, such as the best epoch.
	// There is none if MarkWord is "".
	Mark     float64
	MarkWord string
}

// span is what an axis shows: from lo to hi, with a line at each step.
type span struct{ lo, hi, step float64 }

// spanOf returns an axis from lo to hi, or a little wider, of about the given number of steps.
func spanOf(lo, hi float64, steps int) span {
	if !(hi > lo) { // one value, or equal ones
		room := max(math.Abs(lo)/10, 0.5)
		lo, hi = lo-room, hi+room
	}
	step := niceStep((hi - lo) / float64(steps))
	return span{math.Floor(lo/step+1e-9) * step, math.Ceil(hi/step-1e-9) * step, step}
}

// File returns the picture as a file of its own, on white.
func (c *Curves) File() []byte {
	head, rest, _ := bytes.Cut(c.SVG(), []byte("\n"))
	paper := fmt.Sprintf("\n"+`<rect width="%g" height="%g" fill="white"/>`+"\n", curvesWidth,
		curvesHeight)
	return slices.Concat(head, []byte(paper), rest)
}

// SVG returns the picture as part of a page.
func (c *Curves) SVG() []byte {
	x, y := c.spans()
	d := &drawing{}
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="13" fill="%s">`+"\n", curvesWidth, curvesHeight,
		curvesInk)
	d.text(curvesLeft, 18, "start", c.Title, ` font-size="15"`)
	p := plane{x, y}
	d.axes(c, p)
	if c.MarkWord != "" {
		d.mark(p.x(c.Mark), c.MarkWord)
	}
	for k, s := range c.All {
		d.curve(k, s, p)
	}
	d.legendRow(c.All)
	return d.end()
}

// plane maps values to places of the picture.
type plane struct{ across, up span }

func (p plane) x(v float64) float64 {
	return curvesLeft + (v-p.across.lo)/(p.across.hi-p.across.lo)*
		(curvesWidth-curvesLeft-curvesRight)
}

func (p plane) y(v float64) float64 {
	return curvesHeight - curvesBottom - (v-p.up.lo)/(p.up.hi-p.up.lo)*
		(curvesHeight-curvesTop-curvesBottom)
}

// axes draws the grid, its numbers and the names of both axes.
func (d *drawing) axes(c *Curves, p plane) {
	for i := 0; p.up.lo+float64(i)*p.up.step <= p.up.hi+p.up.step/2; i++ {
		v := p.up.lo + float64(i)*p.up.step
		fmt.Fprintf(&d.b, `<path d="M%.1f %.1fH%.1f" stroke="%s"/>`+"\n", curvesLeft, p.y(v),
			curvesWidth-curvesRight, curvesGrid)
		d.text(curvesLeft-6, p.y(v)+4, "end", tick(v, p.up.step), "")
	}
	first := math.Ceil(p.across.lo/p.across.step-1e-9) * p.across.step
	for v := first; v <= p.across.hi+p.across.step/1e6; v += p.across.step {
		d.text(p.x(v), curvesHeight-curvesBottom+17, "middle", tick(v, p.across.step), "")
	}
	d.text((curvesLeft+curvesWidth-curvesRight)/2, curvesHeight-6, "middle", c.XLabel, "")
	middle := (curvesTop + curvesHeight - curvesBottom) / 2
	d.text(14, middle, "middle", c.YLabel, fmt.Sprintf(` transform="rotate(-90 14 %g)"`, middle))
}

// mark draws a dashed line with a word beside it.
func (d *drawing) mark(x float64, word string) {
	fmt.Fprintf(&d.b, `<path d="M%.1f %.1fV%.1f" stroke="%s" stroke-dasharray="2 3"/>`+"\n", x,
		curvesTop, curvesHeight-curvesBottom, curvesInk)
	anchor, at := "start", x+curvesMarkText
	if at > curvesWidth*0.7 {
		anchor, at = "end", x-curvesMarkText
	}
	d.text(at, curvesHeight-curvesBottom-6, anchor, word, "")
}

// spans returns the axes.
func (c *Curves) spans() (x, y span) {
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, s := range c.All {
		for i, v := range s.Y {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			lo[0], hi[0] = min(lo[0], s.X[i]), max(hi[0], s.X[i])
			lo[1], hi[1] = min(lo[1], v), max(hi[1], v)
		}
	}
	if math.IsInf(lo[0], 0) {
		lo, hi = [2]float64{}, [2]float64{1, 1}
	}
	x = spanOf(lo[0], hi[0], curvesTicksX)
	x.lo, x.hi = min(x.hi, lo[0]), max(x.lo, hi[0]) // epochs begin and end at the frame
	if x.lo == x.hi {
		x.lo, x.hi = x.lo-0.5, x.hi+0.5
	}
	if !c.Fractions {
		x.step = max(1, x.step)
	}
	return x, spanOf(lo[1], hi[1], curvesTicksY)
}

// tick formats a place on an axis, with as many decimals as the step has.
func tick(v, step float64) string {
	decimals := int(max(0, math.Ceil(-math.Log10(step)-1e-9)))
	if decimals > 6 || math.Abs(v) >= 1e7 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.*f", decimals, v+0) // +0: no -0
}

// curve draws a series, with a gap where it has no value.
func (d *drawing) curve(k int, s Curve, p plane) {
	var path strings.Builder
	pen, every := "M", (len(s.Y)+curvesMarksMost-1)/curvesMarksMost
	for i, v := range s.Y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, p.x(s.X[i]), p.y(v))
		pen = "L"
		if i%every == 0 {
			d.marker(k, p.x(s.X[i]), p.y(v), curvesDot)
			d.b.WriteByte('\n')
		}
	}
	if path.Len() > 0 {
		fmt.Fprintf(&d.b, `<path d="%s" stroke="%s" stroke-width="2" fill="none"%s/>`+"\n", &path,
			Color(k), dash(k))
	}
}

// legendRow names the series above the curves. If not all fit, it says how many more there are.
func (d *drawing) legendRow(all []Curve) {
	x := curvesLeft
	for k, s := range all {
		if len(s.Y) == 0 {
			continue
		}
		width := 26 + curvesLetter*float64(len([]rune(s.Name))+2)
		if x+width > curvesWidth-curvesRight && k > 0 {
			d.text(x, 40, "start", fmt.Sprintf("and %d more", len(all)-k), "")
			return
		}
		fmt.Fprintf(&d.b, `<path d="M%.1f 36h20" stroke="%s" stroke-width="3"%s/>`+"\n", x,
			Color(k), dash(k))
		d.marker(k, x+10, 36, 4)
		d.text(x+26, 40, "start", s.Name, "")
		x += width
	}
}
