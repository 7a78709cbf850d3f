package dns

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQueriesEndWithTheirContext(t *testing.T) {
	before := net.DefaultResolver
	defer func() { net.DefaultResolver = before }()
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: refuse}
	_, err := Resolver().LookupHost(t.Context(), "zk.example") // package net makes a channel now, which must belong to no bubble
	require.Error(t, err)
	for name, ask := range map[string]func(ctx context.Context, r *net.Resolver) error{
		"host": func(ctx context.Context, r *net.Resolver) error {
			_, err := r.LookupHost(ctx, "zk.example")
			return err
		},
		"addr": func(ctx context.Context, r *net.Resolver) error { _, err := r.LookupAddr(ctx, "192.0.2.1"); return err },
		"srv": func(ctx context.Context, r *net.Resolver) error {
			_, _, err := r.LookupSRV(ctx, "", "", "_client._tcp.zk.example")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net.DefaultResolver.Dial = func(context.Context, string, string) (net.Conn, error) {
					near, _ := net.Pipe() // nobody reads what is asked
					return near, nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				time.AfterFunc(time.Second, cancel)
				began := time.Now()
				require.Error(t, ask(ctx, Resolver()))
				assert.Equal(t, time.Second, time.Since(began))
			})
		})
	}
}
