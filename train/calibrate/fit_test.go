package calibrate

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// drawn are outputs whose classes were drawn by the softmax of the outputs divided by a
// temperature.
func drawn(n, classes int, temperature float64) (rows [][]float32, labels []int) {
	rnd := rand.New(rand.NewPCG(4, 2))
	for range n {
		row, sum := make([]float32, classes), 0.0
		for k := range row {
			row[k] = float32(3 * rnd.NormFloat64())
			sum += math.Exp(float64(row[k]) / temperature)
		}
		at, class := rnd.Float64()*sum, 0
		for ; class < classes-1; class++ {
			if at -= math.Exp(float64(row[class]) / temperature); at < 0 {
				break
			}
		}
		rows, labels = append(rows, row), append(labels, class)
	}
	return rows, labels
}

// plainLoss is the mean cross-entropy by a temperature, as it is defined.
func plainLoss(rows [][]float32, labels []int, temperature float64) (loss float64) {
	for i, row := range rows {
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v) / temperature)
		}
		loss -= math.Log(math.Exp(float64(row[labels[i]])/temperature) / sum)
	}
	return loss / float64(len(rows))
}

func sumsOf(rows [][]float32, labels []int, b float64) (s sums) {
	for i, row := range rows {
		s.class(row, labels[i], b)
	}
	return s
}

// TestFit: the temperature is the best of a fine grid, near that by which the classes were drawn.
func TestFit(t *testing.T) {
	for _, drawnBy := range []float64{0.4, 1, 2.5, 12} {
		rows, labels := drawn(1000, 5, drawnBy)
		got, before, after, err := least(func(b float64) (sums, error) {
			return sumsOf(rows, labels, b), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(1)
		for v := 0.1; v < 40; v *= 1.05 {
			best = min(best, plainLoss(rows, labels, v))
		}
		if after > best+1e-9 || math.Abs(after-plainLoss(rows, labels, got)) > 1e-9 ||
			math.Abs(before-plainLoss(rows, labels, 1)) > 1e-9 {
			t.Errorf("temperature %g: losses %g and %g; the best of a grid is %g", got, before,
				after, best)
		}
		if math.Abs(math.Log(got/drawnBy)) > 0.2 {
			t.Errorf("temperature %g, and classes were drawn by %g", got, drawnBy)
		}
	}
}

// TestSums compares derivatives with finite differences, of one class a node and of several labels.
func TestSums(t *testing.T) {
	rows, labels := drawn(40, 3, 1)
	several := func(b float64) (s sums) {
		for i, row := range rows {
			for k, v := range row {
				truth := float32(labels[i] & (k + 1))
				if k == 2 && i%3 == 0 {
					truth = float32(math.NaN())
				}
				s.label(float64(v), truth, b)
			}
		}
		return s
	}
	const h = 1e-5
	for name, at := range map[string]func(b float64) sums{"class": func(b float64) sums {
		return sumsOf(rows, labels, b)
	}, "labels": several} {
		s, less, more := at(0.7), at(0.7-h), at(0.7+h)
		if want := (more.loss - less.loss) / (2 * h); math.Abs(s.slope-want) > 1e-5 {
			t.Errorf("%s: slope %g, want %g", name, s.slope, want)
		}
		if want := (more.slope - less.slope) / (2 * h); math.Abs(s.curve-want) > 1e-5 {
			t.Errorf("%s: second derivative %g, want %g", name, s.curve, want)
		}
	}
	if s := several(1); s.labels != 40*3-14 {
		t.Errorf("%g labels are known", s.labels)
	}
	var one sums
	one.label(2, 1, 1)
	one.label(-1, 0, 1)
	want := math.Log(1+math.Exp(-2)) + math.Log(1+math.Exp(-1))
	if math.Abs(one.loss-want) > 1e-12 {
		t.Errorf("loss %g, want %g", one.loss, want)
	}
}

// TestNoMinimum: predictions that are all right, or all wrong, have no best temperature.
func TestNoMinimum(t *testing.T) {
	for _, class := range []int{0, 1} {
		_, _, _, err := least(func(b float64) (s sums, _ error) {
			s.class([]float32{3, 1}, class, b)
			return s, nil
		})
		if !errors.Is(err, errNoMinimum) {
			t.Errorf("class %d: %v", class, err)
		}
	}
}
