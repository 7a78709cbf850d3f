package random

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func draws(s *Source) string {
	name := make([]byte, 16)
	s.Fill(name)
	order := []int{0, 1, 2, 3, 4, 5, 6, 7}
	s.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return fmt.Sprintf("%x %v %v", name, s.UpTo(time.Hour), order)
}

func TestSeededRepeats(t *testing.T) {
	assert.Equal(t, draws(Seeded(1)), draws(Seeded(1)))
	assert.NotEqual(t, draws(Seeded(1)), draws(Seeded(2)))
}

func TestNamesDoNotInterfere(t *testing.T) {
	a, b := Seeded(1), Seeded(1)
	b.UpTo(time.Hour)
	draws(b.For([]byte("y")))
	assert.Equal(t, draws(a.For([]byte("x"))), draws(b.For([]byte("x"))))
	assert.NotEqual(t, draws(a.For([]byte("z"))), draws(a.For([]byte("y"))))
	assert.Nil(t, (*Source)(nil).For([]byte("x")))
}

func TestNilIsUnforeseeable(t *testing.T) {
	assert.NotEqual(t, draws(nil), draws(nil))
}
