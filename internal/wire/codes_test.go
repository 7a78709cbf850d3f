package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNames(t *testing.T) {
	assert.Equal(t, "getData", OpGetData.String())
	assert.Equal(t, "op 999", Op(999).String())
	assert.Equal(t, "no node", CodeNoNode.String())
	assert.Equal(t, "code 7", Code(7).String())
	assert.Equal(t, "deleted", EventNodeDeleted.String())
	assert.Equal(t, "event 0", EventType(0).String())
}
