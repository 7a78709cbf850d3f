package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWaitsEndInTheirOrder(t *testing.T) {
	var p waitList
	var all []*Removal
	begin := time.Now()
	for _, due := range []time.Duration{3, 1, 2, 3, 0} {
		r := &Removal{}
		p.add(r, begin.Add(due))
		all = append(all, r)
	}
	p.remove(all[2])
	p.remove(all[2])
	var order []*Removal
	for p.first != nil {
		order = append(order, p.first)
		p.remove(p.first)
	}
	assert.Equal(t, []*Removal{all[4], all[1], all[0], all[3]}, order)
	assert.Nil(t, p.last)
}
