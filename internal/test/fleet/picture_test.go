package fleet

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "draw docs/pictures/fleet.svg anew")

// The picture in the decision page shows what the model gives.
func TestPicture(t *testing.T) {
	const file = "../../../docs/pictures/fleet.svg"
	drawn := picture(t)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(drawn), 0o644))
		return
	}
	committed, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(committed), drawn, "`go test ./internal/test/fleet -update` draws it anew")
}

// The measures of a panel, in the picture's units.
const (
	top, bottom  = 34.0, 184.0
	wide, beside = 270, 296
	below        = 214
)

func picture(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 622 460" font-family="sans-serif" font-size="11" fill="#7d8590">
<title>How many of the clients that were cut off are back, by time, in the model of 10,000 clients</title>
`)
	for i, p := range []struct {
		name    string
		outage  outage
		costs   costs
		timeout time.Duration
		shown   time.Duration
		step    int // seconds between two numbers below
	}{
		{"one of three dies, T = 15 s", oneDies, plain, 15 * time.Second, 14 * time.Second, 2},
		{"the leader dies, T = 15 s", leaderDies, plain, 15 * time.Second, 26 * time.Second, 5},
		{"the leader dies, TLS and SASL, T = 6 s", leaderDies, tls, 6 * time.Second, 14 * time.Second, 2},
		{"all are down for 10 s, T = 15 s", allDie, plain, 15 * time.Second, 14 * time.Second, 2},
	} {
		left := 44 + i%2*beside
		fmt.Fprintf(&b, "<g transform=\"translate(0 %d)\">\n", i/2*below)
		at := func(seconds float64) float64 { return float64(left) + seconds*wide/p.shown.Seconds() }
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"20\" font-size=\"12\">%s</text>\n", left, p.name)
		for _, percent := range []int{0, 50, 100} {
			fmt.Fprintf(&b, "<path d=\"M%d %.1fH%d\" stroke=\"#7d8590\" stroke-opacity=\".3\"/>\n", left, height(percent), left+wide)
			if i%2 == 0 {
				fmt.Fprintf(&b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d %%</text>\n", left-6, height(percent)+4, percent)
			}
		}
		for s := 0; s <= int(p.shown.Seconds()); s += p.step {
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"199\" text-anchor=\"middle\">%d</text>\n", at(float64(s)), s)
		}
		for _, c := range []struct {
			name, look string
			rule       rule
		}{
			{"at once, as before", `stroke="#cf222e" stroke-width="1.6"`, atOnce},
			{"Java's client", `stroke="#9a6700" stroke-width="1.6" stroke-dasharray="5 3"`, java},
			{"now", `stroke="#218bff" stroke-width="1.6"`, ours(p.costs)},
		} {
			r := run(t, c.name, many, c.rule, p.outage, p.costs, p.timeout)
			fmt.Fprintf(&b, "<path d=\"M%.1f %.1f", at(0), bottom)
			for percent := 1; percent <= 100; percent++ {
				fmt.Fprintf(&b, "H%.1fV%.1f", at(r.back[len(r.back)*percent/100-1].Seconds()), height(percent))
			}
			fmt.Fprintf(&b, "H%d\" fill=\"none\" %s><title>%s: %d sessions lost</title></path>\n", left+wide, c.look, c.name, r.lost)
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"199\" text-anchor=\"end\" dy=\"14\">seconds</text>\n</g>\n", left+wide)
	}
	b.WriteString(`<path d="M44 442h24" stroke="#cf222e" stroke-width="2"/><text x="74" y="446">at once, as before</text>
<path d="M194 442h24" stroke="#9a6700" stroke-width="2" stroke-dasharray="5 3"/><text x="224" y="446">Java's client</text>
<path d="M344 442h24" stroke="#218bff" stroke-width="2"/><text x="374" y="446">now</text>
</svg>
`)
	return b.String()
}

func height(percent int) float64 { return bottom - (bottom-top)*float64(percent)/100 }
