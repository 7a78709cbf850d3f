package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ClickHouse Keeper leaves an operation that is refused its type, and sends no body.
func TestRefusalsWithoutABody(t *testing.T) {
	var e Encoder
	(&MultiResponse{Results: []MultiResult{{Op: OpGetData, Code: CodeNoNode}, {Op: OpGetChildren}}}).Encode(&e)
	d := NewDecoder(e.B)
	var got MultiResponse
	got.Decode(d)
	require.NoError(t, d.Err())
	require.Zero(t, d.Len())
	require.Equal(t, []MultiResult{{Op: OpError, Code: CodeNoNode}, {Op: OpGetChildren}}, got.Results)
}

func TestMultiRefusesWhatCannotStandInIt(t *testing.T) {
	var e Encoder
	(&multiHeader{op: OpSync}).encode(&e)
	d := NewDecoder(e.B)
	new(MultiRequest).Decode(d)
	require.ErrorContains(t, d.Err(), "sync inside multi")
	d = NewDecoder(e.B)
	new(MultiResponse).Decode(d)
	require.ErrorContains(t, d.Err(), "sync in a multi's results")
}
