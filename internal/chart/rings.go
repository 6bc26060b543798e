package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Rings is a picture of a node and its surroundings: nodes stand on rings by their distance, near
// the nodes that they lead to, and edges are arrows, the darker the more they weigh. It takes its
// colors from the page around it.
type Rings struct {
	Title, Note string
	Nodes       []RingNode
	Edges       []RingEdge
	Groups      []string // the legend: names of the groups of nodes; nil for none
}

// RingNode is a node of Rings; Ring 0 is the middle. Group is a place in Groups, which decides its
// color and its shape. Detail is shown when a reader points at it, and Link is the address that a
// click leads to; "" for none.
type RingNode struct {
	Name, Detail, Link string
	Ring, Group        int
}

// RingEdge is an arrow between nodes, by their places; Weight is from 0 to 1.
type RingEdge struct {
	From, To int
	Weight   float64
}

const (
	ringsSize, ringsTop, ringDot = 720.0, 52.0, 8.0
	ringsRoom                    = 112.0 // for names outside the last ring
	ringsLine                    = 18.0  // a line of the legend
)

// nameShown is how many characters of a node's name are drawn.
const nameShown = 15

// File returns the picture as a file of its own, on white.
func (r *Rings) File() []byte {
	head, rest, _ := bytes.Cut(r.SVG(), []byte("\n"))
	return slices.Concat(head, []byte("\n"+`<rect width="100%" height="100%" fill="white"/>`+"\n"),
		rest)
}

// SVG returns the picture as part of a page.
func (r *Rings) SVG() []byte {
	d, legend := &drawing{}, &drawing{}
	bottom := legend.legendLines(r.Groups, 16, ringsTop+ringsSize, ringsSize-16)
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="12" fill="%s">`+"\n", ringsSize, bottom, curvesInk)
	d.text(16, 20, "start", r.Title, ` font-size="15"`)
	d.text(16, 40, "start", r.Note, "")
	at := r.places()
	for _, e := range r.Edges {
		d.arrow(at[e.From], at[e.To], e.Weight)
	}
	for i, n := range r.Nodes {
		d.ringNode(n, at[i])
	}
	d.b.WriteString(legend.b.String())
	return d.end()
}

// spot is where a node is drawn; angle is that on its ring.
type spot struct{ x, y, angle float64 }

// ringNode draws a node with its name: outside its ring, and in the middle above.
func (d *drawing) ringNode(n RingNode, at spot) {
	if n.Link != "" {
		fmt.Fprintf(&d.b, `<a href="%s">`+"\n", escaped(n.Link))
	}
	d.b.WriteString("<g>")
	if n.Detail != "" {
		fmt.Fprintf(&d.b, "<title>%s</title>", escaped(n.Detail))
	}
	d.marker(n.Group, at.x, at.y, ringDot)
	name := []rune(n.Name)
	if len(name) > nameShown {
		name = append(name[:nameShown-1], '…')
	}
	switch turn := at.angle * 180 / math.Pi; {
	case n.Ring == 0:
		d.text(at.x, at.y-ringDot-5, "middle", string(name), ` font-weight="bold"`)
	case math.Cos(at.angle) >= 0:
		d.text(at.x+ringDot+4, at.y+4, "start", string(name),
			fmt.Sprintf(` transform="rotate(%.1f %.1f %.1f)"`, turn, at.x, at.y))
	default: // no name stands upside down
		d.text(at.x-ringDot-4, at.y+4, "end", string(name),
			fmt.Sprintf(` transform="rotate(%.1f %.1f %.1f)"`, turn-180, at.x, at.y))
	}
	d.b.WriteString("</g>\n")
	if n.Link != "" {
		d.b.WriteString("</a>\n")
	}
}

// places returns where nodes are: those of a ring at equal angles, in the order of the nodes inside
// it that they lead to.
func (r *Rings) places() []spot {
	most, rings := 1, map[int][]int{}
	for i, n := range r.Nodes {
		most = max(most, n.Ring)
		rings[n.Ring] = append(rings[n.Ring], i)
	}
	parents := r.parents()
	all := make([]spot, len(r.Nodes))
	for ring := range most + 1 {
		nodes := rings[ring]
		inside := func(i int) float64 {
			if p, has := parents[i]; has {
				return all[p].angle
			}
			return 0
		}
		slices.SortStableFunc(nodes, func(a, b int) int {
			return cmp.Compare(inside(a), inside(b))
		})
		radius := (ringsSize/2 - ringsRoom) * float64(ring) / float64(most)
		for k, i := range nodes {
			angle := 2*math.Pi*float64(k)/float64(len(nodes)) + 0.1
			all[i] = spot{ringsSize/2 + radius*math.Cos(angle),
				ringsTop + ringsSize/2 + radius*math.Sin(angle), angle}
		}
	}
	return all
}

// parents returns for nodes the first one that an edge joins them with on the ring inside.
func (r *Rings) parents() map[int]int {
	parents := map[int]int{}
	for _, e := range r.Edges {
		from, to := e.From, e.To
		if r.Nodes[from].Ring < r.Nodes[to].Ring {
			from, to = to, from
		}
		if _, known := parents[from]; !known && r.Nodes[from].Ring == r.Nodes[to].Ring+1 {
			parents[from] = to
		}
	}
	return parents
}

// arrow draws an edge up to the marks of its nodes.
func (d *drawing) arrow(from, to spot, weight float64) {
	long := math.Hypot(to.x-from.x, to.y-from.y)
	if long < 2*ringDot { // of a node to itself
		return
	}
	dx, dy := (to.x-from.x)/long, (to.y-from.y)/long
	endX, endY := to.x-dx*(ringDot+2), to.y-dy*(ringDot+2)
	fmt.Fprintf(&d.b, `<path d="M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1fL%.1f %.1f" fill="none" `+
		`stroke="%s" stroke-width="1.4" stroke-opacity="%.2f"/>`+"\n", from.x+dx*ringDot,
		from.y+dy*ringDot, endX, endY, endX-7*dx+3.5*dy, endY-7*dy-3.5*dx, endX, endY,
		endX-7*dx-3.5*dy, endY-7*dy+3.5*dx, curvesInk, 0.15+0.85*min(1, max(0, weight)))
}
