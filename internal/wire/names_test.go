package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestListOfNames(t *testing.T) {
	for _, want := range [][]string{{"a", "", "bc"}, {}, {""}} {
		var e Encoder
		e.Strings(want)
		e.Int32(7)
		var names Names
		d := NewDecoder(e.B)
		names.Decode(d)
		assert.EqualValues(t, 7, d.Int32(), "what is behind them")
		assert.Equal(t, want, names.Strings())
		i := 0
		for at, name := range names.All() {
			assert.Equal(t, want[i], string(name))
			assert.Equal(t, name, names.At(at))
			i++
		}
		assert.Equal(t, len(want), i)
		for n := range len(e.B) - 4 {
			short := NewDecoder(e.B[:n])
			names.Decode(short)
			assert.ErrorIs(t, short.Err(), ErrMalformed)
			assert.Zero(t, names)
		}
	}

	// A name of length -1 is none; a list with count -1 has none.
	var names Names
	names.Decode(NewDecoder([]byte{0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 'a'}))
	assert.Equal(t, []string{"", "a"}, names.Strings())
	names.Decode(NewDecoder([]byte{0xff, 0xff, 0xff, 0xff}))
	assert.Empty(t, names.Strings())
}
