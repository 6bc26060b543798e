package report

import (
	"fmt"
	"html/template"

	"gdb/internal/chart"
	"gdb/train/task"
)

// precisionChart draws the precision over the recall.
func precisionChart(c *task.Curves) template.HTML {
	name := "mean of the classes, each against the rest"
	if c.Class != "" {
		name = "class " + c.Class
	}
	s := chart.Curve{Name: name}
	for i, v := range c.Precision {
		s.X, s.Y = append(s.X, float64(i)/float64(len(c.Precision)-1)), append(s.Y, v)
	}
	p := &chart.Curves{Title: fmt.Sprintf("Precision by recall (average precision %.3f)",
		c.AveragePrecision), XLabel: "recall", YLabel: "precision", Fractions: true,
		All: []chart.Curve{s}}
	return template.HTML(p.SVG())
}

// reliabilityChart draws which share of predictions is right, over what their probabilities say.
func reliabilityChart(c *task.Curves) template.HTML {
	s := chart.Curve{Name: "predictions"}
	for _, part := range c.Reliability {
		if part.Count > 0 {
			s.X, s.Y = append(s.X, part.Probability), append(s.Y, part.Right)
		}
	}
	p := &chart.Curves{Title: fmt.Sprintf("Reliability (expected calibration error %.3f)", c.ECE),
		XLabel: "probability that is predicted", YLabel: "share that is right", Fractions: true,
		All: []chart.Curve{s, {Name: "as right as predicted", X: []float64{0, 1},
			Y: []float64{0, 1}}}}
	if c.Calibrated != nil {
		s := chart.Curve{Name: fmt.Sprintf("by the temperature %.3f (error %.3f)",
			c.Calibrated.Temperature, c.Calibrated.ECE)}
		for _, part := range c.Calibrated.Reliability {
			if part.Count > 0 {
				s.X, s.Y = append(s.X, part.Probability), append(s.Y, part.Right)
			}
		}
		p.All = append(p.All, s)
	}
	return template.HTML(p.SVG())
}

// reliabilityRows returns the parts of a reliability diagram that have predictions.
func reliabilityRows(c *task.Curves) (rows [][4]string) {
	for i, part := range c.Reliability {
		if part.Count > 0 {
			n := float64(len(c.Reliability))
			rows = append(rows, [4]string{fmt.Sprintf("%.1f to %.1f", float64(i)/n,
				float64(i+1)/n), count(part.Count), fmt.Sprintf("%.3f", part.Probability),
				fmt.Sprintf("%.3f", part.Right)})
		}
	}
	return rows
}
