// Package dns asks the resolver of package net in such a way that it sees the end of a context.
package dns

import (
	"context"
	"errors"
	"net"
)

// Resolver is net.DefaultResolver as it is now. Its queries end when their context is
// canceled. Those of package net see no more of a context than its deadline, as of Go 1.26:
// each goes on for five seconds. LookupIPAddr alone returns at once, but leaves them behind.
//
// Where package net asks the C library or Windows instead, a thread waits on, and the call returns,
// save for SRV and PTR records on Windows.
func Resolver() *net.Resolver {
	preset := net.DefaultResolver
	dial := preset.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &net.Resolver{PreferGo: preset.PreferGo, StrictErrors: preset.StrictErrors, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err == nil {
			context.AfterFunc(ctx, func() { // also at the end of each query, which has closed it
				if errors.Is(ctx.Err(), context.Canceled) {
					_ = nc.Close()
				}
			})
		}
		return nc, err
	}}
}
