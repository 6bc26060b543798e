package chart

import (
	"fmt"
	"math"
)

// Scatter is a chart of points in groups, which differ by color and by shape. It takes its colors
// from the page around it.
type Scatter struct {
	Title, Note, XLabel, YLabel string
	Groups                      []Points
}

// Points are points of a group: Y has a value for each in X.
type Points struct {
	Name string
	X, Y []float64
}

const (
	scatterWidth, scatterHeight = 720.0, 560.0
	scatterLeft, scatterEdge    = 46.0, 16.0
	scatterTop, scatterBottom   = 52.0, 34.0
	scatterDot                  = 3.2
)

// SVG returns the chart as part of a page.
func (s *Scatter) SVG() []byte {
	d, legend := &drawing{}, &drawing{}
	var names []string
	for _, g := range s.Groups {
		names = append(names, g.Name)
	}
	bottom := legend.legendLines(names, scatterLeft, scatterHeight, scatterWidth-scatterEdge)
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="13" fill="%s">`+"\n", scatterWidth, bottom, curvesInk)
	d.text(scatterLeft, 20, "start", s.Title, ` font-size="15"`)
	d.text(scatterLeft, 40, "start", s.Note, ` font-size="12"`)
	fmt.Fprintf(&d.b, `<path d="M%g %gV%gH%g" stroke="%s" fill="none"/>`+"\n", scatterLeft,
		scatterTop, scatterHeight-scatterBottom, scatterWidth-scatterEdge, curvesGrid)
	d.text((scatterLeft+scatterWidth)/2, scatterHeight-12, "middle", s.XLabel, "")
	middle := (scatterTop + scatterHeight - scatterBottom) / 2
	d.text(24, middle, "middle", s.YLabel, fmt.Sprintf(` transform="rotate(-90 24 %g)"`, middle))
	x, y := s.spans()
	for k, g := range s.Groups {
		for i := range g.X {
			if !finite(g.X[i]) || !finite(g.Y[i]) {
				continue
			}
			d.marker(k, scatterLeft+8+(g.X[i]-x.lo)/(x.hi-x.lo)*
				(scatterWidth-scatterLeft-scatterEdge-16), scatterHeight-scatterBottom-8-
				(g.Y[i]-y.lo)/(y.hi-y.lo)*(scatterHeight-scatterTop-scatterBottom-16), scatterDot)
			d.b.WriteByte('\n')
		}
	}
	d.b.WriteString(legend.b.String())
	return d.end()
}

// spans returns the axes.
func (s *Scatter) spans() (x, y span) {
	x, y = span{lo: math.Inf(1), hi: math.Inf(-1)}, span{lo: math.Inf(1), hi: math.Inf(-1)}
	for _, g := range s.Groups {
		for i := range g.X {
			if finite(g.X[i]) && finite(g.Y[i]) {
				x.lo, x.hi = min(x.lo, g.X[i]), max(x.hi, g.X[i])
				y.lo, y.hi = min(y.lo, g.Y[i]), max(y.hi, g.Y[i])
			}
		}
	}
	for _, axis := range []*span{&x, &y} {
		if !(axis.hi > axis.lo) { // one value, or none
			axis.lo, axis.hi = min(axis.lo, 0)-1, max(axis.hi, 0)+1
			if math.IsInf(axis.lo, 0) || math.IsInf(axis.hi, 0) {
				axis.lo, axis.hi = -1, 1
			}
		}
	}
	return x, y
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
