package list

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

type thing struct {
	name  string
	place Place[thing]
}

func names(l *List[thing]) (all []string) {
	for t := range l.All() {
		all = append(all, t.name)
	}
	return all
}

func TestList(t *testing.T) {
	var l, other List[thing]
	assert.Nil(t, l.First())
	a, b, c, d := &thing{name: "a"}, &thing{name: "b"}, &thing{name: "c"}, &thing{name: "d"}
	l.PushFront(b, &b.place)
	l.Push(c, &c.place)
	l.Push(d, &d.place)
	l.PushFront(a, &a.place)
	assert.Equal(t, []string{"a", "b", "c", "d"}, names(&l))
	assert.Equal(t, 4, l.Len())
	assert.Same(t, a, l.First())

	assert.True(t, b.place.Remove())
	assert.False(t, b.place.Remove())
	assert.Nil(t, b.place.In())
	other.Push(b, &b.place)
	assert.Same(t, &other, b.place.In())
	assert.Same(t, &l, c.place.In())
	assert.Equal(t, []string{"a", "c", "d"}, names(&l))
	assert.Equal(t, []string{"b"}, names(&other))

	for thing := range l.All() { // each may go in its turn
		thing.place.Remove()
	}
	assert.Empty(t, names(&l))
	assert.Zero(t, l.Len())
	l.Push(d, &d.place)
	assert.Equal(t, []string{"d"}, names(&l))
	for range l.All() {
		break
	}
}
