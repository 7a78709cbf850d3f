package framework

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The rows are those of Curator's TestReconfiguration, and more.
func TestParseEnsemble(t *testing.T) {
	for config, want := range map[string][]string{
		"":                      nil,
		"version=100000000":     nil,
		"server.1=a:2888:3888":  nil, // no client address
		"server.1=a:1:2;2181\n": {"a:2181"},
		"server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:observer;0.0.0.0:2182\nversion=1": {"a:2181", "b:2182"},
		"server.2=b:1:2;10.0.0.2:2182\nserver.1=a:1:2;10.0.0.1:2181":                               {"10.0.0.1:2181", "10.0.0.2:2182"},
		"server.1=a:1:2;0:0:0:0:0:0:0:0:2181":                                                      {"a:2181"},
		"server.1=a:1:2;[::]:2181":                                                                 {"a:2181"},
		"server.1=[fd00::1]:1:2;[::]:2181":                                                         {"[fd00::1]:2181"},
		"server.1=[fd00::1]:1:2;[fd00::2]:2181":                                                    {"[fd00::2]:2181"},
		"server.1=10.0.1.1:1:2|10.0.2.1:1:2:participant;2181":                                      {"10.0.1.1:2181"},
		"server.1=a:1:2;2181\nserver.3=a:1:2;2181":                                                 {"a:2181"},
	} {
		got, err := parseEnsemble(config)
		require.NoError(t, err, config)
		assert.Equal(t, want, got, config)
	}
	for _, bad := range []string{"server.1=a:1:2;", "server.1=:1:2;2181", "server.1=;b:", "server.1=a:1:2;0", "server.1=a:1:2;65536", "server.1=a b:1:2;2181", "server.1=me@a:1:2;2181", "server.1=a/b:1:2;2181", "server.1=${HOST}:1:2;2181"} {
		_, err := parseEnsemble(bad)
		require.ErrorIs(t, err, ErrInvalidArgument, bad)
	}
}
