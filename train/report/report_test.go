package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"gdb/train"
	"gdb/train/runs"
	"gdb/train/task"
)

func sampleData() *Data {
	val := 0.5
	d := &Data{Store: "g.gdb", Run: "r0001", Status: "done", Made: "gdb 0.1.0", Metric: "accuracy",
		Data: [][2]string{{"nodes", "1,000"}}, Settings: [][2]string{{"lr", "0.005"}}, Best: 2}
	for i := range 100 {
		d.Epochs = append(d.Epochs, runs.Epoch{Epoch: i + 1, Loss: 1 / float64(i+1), Train: 0.9,
			Time: 0.25, Read: 1 << 20, Stages: []runs.StageTimes{{Name: "gather", Busy: 0.1}}})
	}
	d.Epochs[1].Val, d.Epochs[1].ValLoss = &val, &val
	d.Test = &train.EvalResult{Split: "test", Metric: "accuracy", Value: 0.8125, Nodes: 16,
		Epoch: 2,
		ClassMetrics: &task.ClassMetrics{Classes: []task.ClassScore{
			{Class: "<script>alert(1)</script>", Nodes: 10, Precision: 0.75},
			{Class: "b", Nodes: 6, F1: 0.625}}, Confusion: [][]uint64{{9, 1}, {2, 4}},
			Curves: &task.Curves{Class: "b", Precision: []float64{1, 0.875, 0.5},
				AveragePrecision: 0.8125, ECE: 0.0625, Reliability: []task.Reliability{{},
					{Count: 16, Probability: 0.75, Right: 0.6875}}}}}
	d.Pictures = []Picture{{Title: "Vectors", Why: "<b>"}}
	return d
}

// TestReportOfNumbers has errors where one of classes has scores by class.
func TestReportOfNumbers(t *testing.T) {
	d := sampleData()
	d.Test.ClassMetrics = nil
	d.Test.Metric, d.Test.Value = "rmse", 12.5
	d.Test.NumberMetrics = &task.NumberMetrics{RMSE: 12.5, MAE: 10, R2: 0.75}
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if !strings.Contains(page, "rmse 12.5000, mae 10.0000, r2 0.7500") ||
		strings.Contains(page, "Classes") || strings.Contains(page, "accuracy 0") {
		t.Errorf("the page:\n%s", page)
	}
}

// TestReport: what was measured stands in the page, names cannot act, and nothing is loaded.
func TestReport(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, sampleData()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"<b>0.8125</b>", "Run r0001 of g.gdb", "0.750", "0.625",
		"<td>time of training</td><td>25.0 s</td>",
		"<td>read from the device</td><td>100.0 MiB</td>",
		"<td>busy: gather</td><td>10.0 s</td>", "<td>lr</td><td>0.005</td>", "Confusion",
		"rgba(0,114,178,0.76)", "&lt;script&gt;", ">best: epoch 2<", "prefers-color-scheme: dark",
		">0.6</text>", "(average precision 0.812)", "class b", "(expected calibration error 0.062)",
		"<td>0.5 to 1.0</td><td>16</td><td>0.750</td><td>0.688</td>", "as right as predicted",
		"<h2>Vectors</h2>", "Not drawn: &lt;b&gt;<"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	bare := strings.ReplaceAll(page, "http://www.w3.org/2000/svg", "")
	if regexp.MustCompile(`<script|https?:|src=|href=`).MatchString(bare) {
		t.Error("the page acts, or loads something")
	}
	svgs := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(svgs) != 6 {
		t.Errorf("%d charts", len(svgs))
	}
	for _, svg := range svgs {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
		}
	}
}

// TestReportOfSeveral: each run has its line, its color in all charts, a chart for each metric, and
// the settings that differ beside each other.
func TestReportOfSeveral(t *testing.T) {
	one, two, none := sampleData(), sampleData(), &Data{Run: "r3", Metric: "rmse", Status: "failed"}
	low, high := 0.25, 0.75
	one.Val, one.Tested, two.Run = &high, &low, "r<2>"
	two.Metric, two.Epochs = "rmse", []runs.Epoch{{Epoch: 1, Val: &low, Train: 2, Time: 1.5}}
	two.Best, two.Val = 1, &low
	var b bytes.Buffer
	s := &Several{Store: "g.gdb", Runs: []*Data{one, two, none},
		Data: [][2]string{{"nodes", "1,000"}}, Differing: [][]string{{"lr", "1", "2", "3"}}}
	if err := WriteSeveral(&b, s); err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"<h1>3 runs of g.gdb</h1>",
		"<td>accuracy</td> <td>0.2500</td><td>0.7500</td><td>2</td> <td>100</td><td>25.0</td>" +
			"<td>done",
		"r&lt;2&gt;</td><td>rmse</td> <td>-</td><td>0.2500</td><td>1</td> <td>1</td><td>1.5</td>",
		"r3</td><td>rmse</td> <td>-</td><td>-</td><td>-</td> <td>0</td><td>0.0</td><td>failed",
		"<th>setting</th><th>r0001</th><th>r&lt;2&gt;</th><th>r3</th>",
		"<td>lr</td><td>1</td><td>2</td><td>3</td>", "<td>nodes</td><td>1,000</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	svgs := regexp.MustCompile(`<svg.*?</svg>`).FindAllString(page, -1)
	titles := regexp.MustCompile(`font-size="15">([^<]*)<`).FindAllStringSubmatch(page, -1)
	if len(svgs) != 7 || len(titles) != 7 {
		t.Fatalf("%d charts: %q", len(svgs), titles)
	}
	second := regexp.MustCompile(`color: (#\w+)">■</b> r&lt;2`).FindStringSubmatch(
		strings.ReplaceAll(page, "&#9632;", "■"))
	if second == nil || !strings.Contains(svgs[2], second[1]) ||
		!strings.Contains(svgs[4], second[1]) ||
		strings.Contains(svgs[0], second[1]) || strings.Contains(svgs[2], ">r0001<") {
		t.Errorf("the color of the second run is %q:\n%s", second, page)
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Classes") {
		t.Error(page)
	}
}

// TestReportOfNothing: a run that was stopped before its first epoch, in a store without test.
func TestReportOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, &Data{Run: "r0001", Status: "interrupted"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<svg") || strings.Contains(b.String(), "NaN") {
		t.Error(b.String())
	}
}

// TestPlotText draws each run under its name, with the same axis, and says which has nothing yet.
func TestPlotText(t *testing.T) {
	low, high := 0.25, 0.75
	one := []runs.Epoch{{Epoch: 1, Val: &low}, {Epoch: 2, Val: &high}}
	var b strings.Builder
	if err := PlotText(&b, "accuracy", []Run{{"a", one}, {"b", one[:1]}, {"c", nil}}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Count(text, " 0.750 ") != 2 || strings.Count(text, " 0.250 ") != 2 ||
		!strings.Contains(text, "run a: val accuracy in 2 epochs\n") ||
		!strings.Contains(text, "run c has no evaluated epoch yet\n") {
		t.Error(text)
	}
	for line := range strings.Lines(text) {
		if len([]rune(line)) > 81 {
			t.Errorf("a line of %d columns: %s", len([]rune(line)), line)
		}
	}
}

func TestCompare(t *testing.T) {
	d := sampleData()
	svg := string(Compare("accuracy", []Run{{"r1", d.Epochs}, {"r2", d.Epochs[:3]}}))
	for _, want := range []string{"r1", "r2", "accuracy", ">epoch<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q", want)
		}
	}
}
