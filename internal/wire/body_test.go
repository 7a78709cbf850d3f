package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A body stands in a transaction as the record that it was encoded from.
func TestBodyIsAnEncodedRecord(t *testing.T) {
	req := &CreateRequest{Path: "/a", Data: []byte("x"), Flags: FlagEphemeral}
	var alone Encoder
	req.Encode(&alone)
	body := Body(alone.B)
	var with, without Encoder
	(&MultiRequest{Ops: []MultiOp{{OpCreate, req}}}).Encode(&with)
	(&MultiRequest{Ops: []MultiOp{{OpCreate, &body}}}).Encode(&without)
	assert.Equal(t, with.B, without.B)

	var back Body
	d := NewDecoder(alone.B)
	back.Decode(d)
	assert.Equal(t, body, back)
	assert.Zero(t, d.Len())
	assert.NoError(t, d.Err())
}
