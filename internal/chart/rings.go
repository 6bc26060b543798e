package chart

import (
	"fmt"
	"math"
)

// Rings is a picture of a node and what is around it: nodes stand on rings by their distance, and
// edges are arrows, the darker the more they weigh.
type Rings struct {
	Title, Note string
	Nodes       []RingNode
	Edges       []RingEdge
}

// RingNode is a node of Rings; Ring 0 is the middle. Mark is a number by whose sign it is colored.
type RingNode struct {
	Name string
	Ring int
	Mark float64
}

// RingEdge is an arrow between nodes, by their places; Weight is from 0 to 1.
type RingEdge struct {
	From, To int
	Weight   float64
}

const ringsSize, ringsTop, ringDot = 640.0, 52.0, 9.0

// nameShown is how many characters of a node's name are drawn.
const nameShown = 18

// SVG returns the picture.
func (r *Rings) SVG() []byte {
	d := &drawing{}
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="12">`+"\n", ringsSize, ringsSize+ringsTop)
	fmt.Fprintf(&d.b, `<rect width="%g" height="%g" fill="white"/>`+"\n", ringsSize,
		ringsSize+ringsTop)
	d.text(16, 22, "start", r.Title, ` font-size="16"`)
	d.text(16, 41, "start", r.Note, ` fill="#555"`)
	x, y := r.places()
	for _, e := range r.Edges {
		d.arrow(x[e.From], y[e.From], x[e.To], y[e.To], e.Weight)
	}
	for i, n := range r.Nodes {
		color := Color(0)
		if n.Mark < 0 {
			color = Color(5)
		}
		fmt.Fprintf(&d.b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="%s"/>`+"\n", x[i], y[i],
			ringDot, color)
		name := []rune(n.Name)
		if len(name) > nameShown {
			name = append(name[:nameShown-1], '…')
		}
		d.text(x[i], y[i]-ringDot-4, "middle", string(name), "")
	}
	return d.end()
}

// places returns where nodes are: those of a ring at equal angles.
func (r *Rings) places() (x, y []float64) {
	most, counts := 1, map[int]int{}
	for _, n := range r.Nodes {
		most = max(most, n.Ring)
		counts[n.Ring]++
	}
	radius := (ringsSize/2 - 48) / float64(most)
	seen := map[int]int{}
	for _, n := range r.Nodes {
		angle := 2*math.Pi*float64(seen[n.Ring])/float64(counts[n.Ring]) + 0.4*float64(n.Ring)
		seen[n.Ring]++
		x = append(x, ringsSize/2+radius*float64(n.Ring)*math.Cos(angle))
		y = append(y, ringsTop+ringsSize/2+radius*float64(n.Ring)*math.Sin(angle))
	}
	return x, y
}

// arrow draws an edge up to the circles of its nodes.
func (d *drawing) arrow(x, y, toX, toY, weight float64) {
	long := math.Hypot(toX-x, toY-y)
	if long < 2*ringDot { // of a node to itself
		return
	}
	dx, dy := (toX-x)/long, (toY-y)/long
	endX, endY := toX-dx*(ringDot+2), toY-dy*(ringDot+2)
	fmt.Fprintf(&d.b, `<path d="M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1fL%.1f %.1f" fill="none" `+
		`stroke="#333" stroke-width="1.8" stroke-opacity="%.2f"/>`+"\n", x+dx*ringDot, y+dy*ringDot,
		endX, endY, endX-8*dx+4*dy, endY-8*dy-4*dx, endX, endY, endX-8*dx-4*dy, endY-8*dy+4*dx,
		0.15+0.85*min(1, max(0, weight)))
}
