package framework

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
)

// configNode is where servers since 3.5 keep the configuration of the ensemble.
const configNode = "/zookeeper/config"

// Servers are the servers that the client may connect to, as host:port, in no
// order. They come from the connection string, from the ensemble's configuration with
// Config.FollowEnsemble, or from Config.ServerList.
func (c *Client) Servers() []string {
	if c.unusable() {
		return nil
	}
	return c.session.Transport().Servers()
}

// followEnsemble takes the list of servers from the ensemble's configuration,
// now and whenever it changes.
//
// Source: Curator's EnsembleTracker.
func (b *base) followEnsemble() {
	o := &op{base: b, name: "follow the ensemble", path: configNode}
	report := func(err error) { b.session.Report("the list of servers is not followed", o.fail(err)) }
	conn := func(ctx context.Context) (*transport.Conn, error) { return b.session.AwaitConn(ctx, false) }
	b.session.Go(func(ctx context.Context) {
		err := session.Observe(ctx, b.session, conn, configNode, func(data []byte) {
			servers, err := parseEnsemble(string(data))
			switch {
			case err != nil:
				report(err) // and the next one may be better
			case len(servers) > 0:
				b.session.Transport().SetServers(servers)
			}
		})
		if ctx.Err() == nil {
			report(err)
		}
	})
}

// parseEnsemble reads lines such as
//
//	server.1=zk1:2888:3888:participant;0.0.0.0:2181
//
// and gives where clients connect: the address behind the semicolon, with the
// server's own host where it is left out or stands for all. Lines that do not say
// it are passed over, as they are for servers whose client port stands in a file
// of their own.
func parseEnsemble(config string) ([]string, error) {
	var servers []string
	for line := range strings.Lines(config) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || !strings.HasPrefix(key, "server.") {
			continue
		}
		server, client, ok := strings.Cut(value, ";")
		if !ok {
			continue
		}
		host, port := "", client
		if i := strings.LastIndex(client, ":"); i >= 0 {
			host, port = strings.Trim(client[:i], "[]"), client[i+1:]
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = hostOf(server)
		}
		some, err := parseServers(net.JoinHostPort(host, port))
		if err != nil {
			return nil, fmt.Errorf("%w: configuration line %q: %w", ErrInvalidArgument, strings.TrimSpace(line), err)
		}
		servers = append(servers, some...)
	}
	slices.Sort(servers)
	return slices.Compact(servers), nil
}

// hostOf is the host of "host:port:port[:role]", the first of several addresses
// separated by "|".
func hostOf(server string) string {
	server, _, _ = strings.Cut(server, "|")
	if rest, ok := strings.CutPrefix(server, "["); ok {
		host, _, _ := strings.Cut(rest, "]")
		return host
	}
	host, _, _ := strings.Cut(server, ":")
	return host
}
