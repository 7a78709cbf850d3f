package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestThePictureIsReplaced(t *testing.T) {
	var out strings.Builder
	v := &view{w: &out, live: true}
	p := picture{at: time.Second, length: 20 * time.Second, total: "2000: right", sound: true}
	for n := range mostRows + 2 {
		p.accounts = append(p.accounts, row{cells: []string{fmt.Sprint(n), "1000", "worker 1", ""}})
	}
	p.workers = []row{{cells: []string{"1", "4711", "CONNECTED", "7", "holds 3"}}}
	v.draw(p)
	first := out.String()
	assert.Contains(t, first, "and 2 more")
	assert.NotContains(t, first, "\x1b[J")
	assert.LessOrEqual(t, strings.Count(first, "\n"), 24, "lines of the smallest terminal")

	out.Reset()
	v.event(2*time.Second, "something")
	up := fmt.Sprintf("\x1b[%dA\x1b[J", strings.Count(first, "\n"))
	assert.True(t, strings.HasPrefix(out.String(), up), "%q", out.String())

	out.Reset()
	v.draw(p)
	assert.Equal(t, first, out.String(), "nothing to take away below an event")
}

func TestWithoutATerminalThereAreOnlyLines(t *testing.T) {
	var out strings.Builder
	v := &view{w: &out}
	v.event(time.Second, "something")
	v.draw(picture{at: 1500 * time.Millisecond, rate: 200, total: "2000: right", short: []string{"w1 has 3+5   ", "w2          "}})
	assert.Equal(t, "  1.0s * something\n  1.5s    200/s   total 2000: right   w1 has 3+5    w2\n", out.String())
}

func TestAnd(t *testing.T) {
	for want, numbers := range map[string][]int{"": nil, "3": {3}, "3 and 5": {3, 5}, "3, 5 and 7": {3, 5, 7}} {
		assert.Equal(t, want, and(numbers))
	}
}
