package framework_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
)

// Zero values do nothing, and say so.
func TestZeroValues(t *testing.T) {
	new(framework.Watch).Stop()
	(*framework.Watch)(nil).Stop()
	assert.Equal(t, "LATENT session 0x0", fmt.Sprint(new(framework.Client)))
	assert.Equal(t, "LATENT session 0x0", (*framework.Client)(nil).String())
}
