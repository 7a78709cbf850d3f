package listeners_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/listeners"
)

func TestStates(t *testing.T) {
	cases := []struct {
		state     listeners.State
		word      string
		connected bool
	}{
		{listeners.Latent, "LATENT", false},
		{listeners.Connected, "CONNECTED", true},
		{listeners.Suspended, "SUSPENDED", false},
		{listeners.Reconnected, "RECONNECTED", true},
		{listeners.Lost, "LOST", false},
		{listeners.ReadOnly, "READ_ONLY", true},
		{listeners.State(6), "State(6)", false},
		{listeners.State(-1), "State(-1)", false},
	}
	for _, tc := range cases {
		assert.Equal(t, tc.word, tc.state.String())
		assert.Equal(t, tc.connected, tc.state.IsConnected(), tc.word)
	}
	var zero listeners.State
	assert.Equal(t, listeners.Latent, zero)
}
