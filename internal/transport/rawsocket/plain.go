//go:build !linux || (!amd64 && !arm64) || paddock_noraw

package rawsocket

import "net"

// New returns the connection as it is: on this system, or with the build tag
// paddock_noraw.
func New(nc net.Conn) net.Conn { return nc }
