package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPause(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		round         int
		timeout, left time.Duration
		least, most   time.Duration
		costly        bool
	}{
		{0, 15 * time.Second, 0, 0, time.Second, false},
		{1, 15 * time.Second, 0, 50 * ms, 100 * ms, false},
		{2, 15 * time.Second, 0, 100 * ms, 200 * ms, false},
		{5, 15 * time.Second, 0, 800 * ms, 1600 * ms, false},
		{6, 15 * time.Second, 0, 1000 * ms, 2000 * ms, false},
		{1 << 40, 15 * time.Second, 0, 1000 * ms, 2000 * ms, false},
		{0, 6 * time.Second, 0, 0, 400 * ms, false},
		{9, 6 * time.Second, 0, 400 * ms, 800 * ms, false},
		{1, 300 * ms, 0, 20 * ms, 40 * ms, false},
		{9, time.Hour, 0, mostCounted / 15, mostCounted * 2 / 15, false},
		{0, 15 * time.Second, ms, 0, time.Second, false},
		{2, 15 * time.Second, 8 * time.Second, 100 * ms, 200 * ms, false},
		{9, 15 * time.Second, 8 * time.Second, 1000 * ms, 2000 * ms, false},
		{9, 15 * time.Second, ms, 50 * ms, 100 * ms, false},
		{9, 15 * time.Second, -time.Second, 1000 * ms, 2000 * ms, false},
		{0, 15 * time.Second, 0, 0, time.Second, true},
		{0, 6 * time.Second, 0, 0, time.Second, true},
		{0, 3 * time.Second, 0, 0, 600 * ms, true},
		{0, 30 * time.Second, 0, 0, 2 * time.Second, true},
		{2, 15 * time.Second, 0, 100 * ms, 200 * ms, true},
	} {
		least, most := Pause(tc.round, tc.timeout, tc.left, tc.costly)
		assert.Equal(t, tc.least, least, "%+v", tc)
		assert.Equal(t, tc.most, most, "%+v", tc)
	}
}
