package main

import (
	"bytes"
	"errors"
	"image/color"
	"os"
	"regexp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawn is whether there is a picture of a group: one look at what the page is about.
func (g *group) drawn() bool {
	return slices.Contains([]string{
		"ZooKeeper: uncontended",
		"ZooKeeper: MultiLock",
		"ZooKeeper: hand-offs, own sessions",
		"ZooKeeper: hand-offs, 3 ms each way, held for 0 ms",
		"ZooKeeper: many locks",
	}, g.title)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// theme is what differs between a light and a dark ground. The ground itself stays
// transparent.
type theme struct {
	name      string
	ink, line color.RGBA
	others    color.RGBA // raw requests and zk.Lock
	ours      color.RGBA
}

var themes = []theme{
	{"light", color.RGBA{0x1f, 0x23, 0x28, 0xff}, color.RGBA{0x59, 0x63, 0x6e, 0xff}, color.RGBA{0xaf, 0xb8, 0xc1, 0xff}, color.RGBA{0x54, 0xae, 0xff, 0xff}},
	{"dark", color.RGBA{0xf0, 0xf6, 0xfc, 0xff}, color.RGBA{0x91, 0x98, 0xa1, 0xff}, color.RGBA{0x65, 0x6c, 0x76, 0xff}, color.RGBA{0x1f, 0x6f, 0xeb, 0xff}},
}

// draw writes a picture for each theme: a bar for the median of each row, with its ratio
// behind it, and a line from the lowest to the highest round.
func (g *group) draw(path string) error {
	for _, t := range themes {
		if err := g.drawIn(t, path+"-"+t.name+".svg"); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) drawIn(t theme, path string) (err error) {
	const thick = 15 // of a bar, in points
	plot.DefaultFont, plotter.DefaultFont = sans, sans
	p := plot.New()
	p.BackgroundColor = nil // what is behind it
	scale, title := 1e6, "us"
	if g.unit != "sec/op" {
		scale, title = 1, "a second"
	}
	p.X.Label.Text, p.X.Min = title, 0
	p.X.Color, p.X.Tick.Color, p.X.Label.TextStyle.Color, p.X.Tick.Label.Color = t.line, t.line, t.ink, t.ink
	p.X.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := plot.DefaultTicks{}.Ticks(low, high)
		for i := range ticks {
			if ticks[i].Label != "" && ticks[i].Value >= 1000 {
				ticks[i].Label = digits(ticks[i].Value, 3)
			}
		}
		return ticks
	})
	p.Y.Width, p.Y.Tick.Width, p.Y.Tick.Label.Color = 0, 0, t.ink
	var names plot.ConstantTicks
	var ends plotter.XYLabels
	var ranges bars
	var y, longest float64
	for i, r := range g.rows {
		if i > 0 && r.clients != g.rows[i-1].clients {
			y -= 0.5 // a gap before the next number of clients
		}
		y--
		mid, low, high := spread(r.values)
		bar, barErr := plotter.NewBarChart(plotter.Values{mid * scale}, thick)
		if err = errors.Join(err, barErr); err != nil {
			return err
		}
		bar.Horizontal, bar.XMin, bar.LineStyle.Width, bar.Color = true, y, 0, t.ours
		if r.name == "zk.Lock" || r.name == "raw create+delete" {
			bar.Color = t.others
		}
		p.Add(bar)
		names = append(names, plot.Tick{Value: y, Label: g.label(r) + "      "}) // room for a font that is wider than ours
		ranges.XYs = append(ranges.XYs, plotter.XY{X: mid * scale, Y: y})
		ranges.XErrors = append(ranges.XErrors, struct{ Low, High float64 }{(low - mid) * scale, (high - mid) * scale})
		label := show(mid, g.unit)
		if compared := r.ratios(); compared != nil {
			times, _, _ := spread(compared)
			label += "   × " + ratio(times)
		}
		ends.XYs, ends.Labels = append(ends.XYs, plotter.XY{X: high * scale, Y: y}), append(ends.Labels, label)
		longest = max(longest, high*scale)
	}
	p.Y.Min, p.Y.Max, p.X.Max = y-0.5, -0.5, longest*1.35
	p.Y.Tick.Marker = names
	whiskers, err := plotter.NewXErrorBars(ranges)
	if err != nil {
		return err
	}
	whiskers.Color, whiskers.CapWidth = t.line, 5
	labels, err := plotter.NewLabels(ends)
	if err != nil {
		return err
	}
	labels.Offset = vg.Point{X: 6}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Color, labels.TextStyle[i].YAlign = t.ink, text.YCenter
	}
	p.Add(whiskers, labels)
	canvas := vgsvg.New(560, vg.Length(-y*1.5*thick+45))
	p.Draw(draw.Crop(draw.New(canvas), 0, -20, 0, 0))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	withFonts := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return os.WriteFile(path, withFonts, 0o644)
}

// sans has the measures of Arial and Helvetica, which a reader may have in its place.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// bars are medians, and how far the rounds reach from them.
type bars struct {
	plotter.XYs
	plotter.XErrors
}
