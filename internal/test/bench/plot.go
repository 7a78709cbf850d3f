package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

const (
	plotWidth  = 900
	panelWidth = 430
	barHeight  = 15
	labelWidth = 180
	barWidth   = 190 // of the longest bar
)

// plot draws a panel of bars for each group that has ratios.
func plot(all []result) string {
	var b strings.Builder
	order, by := groups(all)
	left, right := 30, 30 // how far the columns are filled
	for _, g := range order {
		rows := by[g]
		if len(rows[0].Ratios) == 0 {
			continue
		}
		x, y := 10, &left
		if right < left {
			x, y = 10+panelWidth+20, &right
		}
		*y = panel(&b, x, *y, g.server+": "+g.name, rows)
	}
	height := max(left, right)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">
<rect width="%d" height="%d" fill="#fff"/>
<text x="10" y="18" font-size="13">Medians of rounds, as multiples of what the line at 1 stands for. Times: less is better. Hand-offs per second: more is better.</text>
%s</svg>
`, plotWidth, height, plotWidth, height, plotWidth, height, b.String())
}

// panel draws one group and returns where the next one may begin.
func panel(b *strings.Builder, x, y int, title string, rows []result) int {
	y += 18
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", x, y, escape(title))
	y += 6
	longest := 1.0
	for _, r := range rows {
		longest = max(longest, median(r.Ratios))
	}
	top := y
	for _, r := range rows {
		ratio := median(r.Ratios)
		width := ratio / longest * barWidth
		color := "#4a7"
		if strings.HasPrefix(r.Name, "zk.Lock") || strings.HasPrefix(r.Name, "raw") {
			color = "#aaa"
		}
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", x+labelWidth-6, y+barHeight-4, escape(r.Name))
		fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>", x+labelWidth, y+1, width, barHeight-3, color)
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\">%.2f</text>\n", float64(x+labelWidth+4)+width, y+barHeight-4, ratio)
		y += barHeight
	}
	one := float64(x+labelWidth) + barWidth/longest
	fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#000\" stroke-dasharray=\"2,2\"/>\n", one, top, one, y)
	return y + 6
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
