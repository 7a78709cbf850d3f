package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPause(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		round       int
		timeout     time.Duration
		least, most time.Duration
	}{
		{0, 15 * time.Second, 0, time.Second},
		{1, 15 * time.Second, 50 * ms, 100 * ms},
		{2, 15 * time.Second, 100 * ms, 200 * ms},
		{5, 15 * time.Second, 800 * ms, 1600 * ms},
		{6, 15 * time.Second, 1500 * ms, 3000 * ms},
		{1 << 40, 15 * time.Second, 1500 * ms, 3000 * ms},
		{0, 6 * time.Second, 0, 400 * ms},
		{9, 6 * time.Second, 600 * ms, 1200 * ms},
		{1, 300 * ms, 30 * ms, 60 * ms},
		{9, time.Hour, 5 * time.Second, 10 * time.Second},
	} {
		least, most := Pause(tc.round, tc.timeout)
		assert.Equal(t, tc.least, least, "%+v", tc)
		assert.Equal(t, tc.most, most, "%+v", tc)
	}
}
