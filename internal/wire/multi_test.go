package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMultiRefusesWhatCannotStandInIt(t *testing.T) {
	var e Encoder
	(&multiHeader{op: OpSync, code: -1}).encode(&e)
	d := NewDecoder(e.B)
	new(MultiRequest).Decode(d)
	require.ErrorContains(t, d.Err(), "sync inside multi")
	d = NewDecoder(e.B)
	new(MultiResponse).Decode(d)
	require.ErrorContains(t, d.Err(), "sync in a multi's results")
}
