package framework

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
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
	b.session.Go(func(ctx context.Context) {
		for ctx.Err() == nil {
			var changed <-chan struct{}
			err := session.RetryUntilDone(ctx, o.session, func(ctx context.Context) (err error) {
				changed, err = o.learnServers(ctx)
				return err
			})
			if err != nil {
				if ctx.Err() == nil {
					o.session.Report("the list of servers is not followed", o.fail(err))
				}
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
}

// learnServers reads the configuration once, with a watch.
func (o *op) learnServers(ctx context.Context) (changed <-chan struct{}, err error) {
	c, err := o.session.AwaitConn(ctx, false)
	if err != nil {
		return nil, err
	}
	event := make(chan struct{}, 1)
	call, watch, err := session.WatchData(ctx, o.session, c, configNode, func(session.Event) { event <- struct{}{} })
	if err != nil {
		return nil, err
	}
	var resp wire.GetDataResponse
	if err = o.session.Await(ctx, c, call, false); err == nil {
		err = call.Decode(&resp)
	}
	if err != nil {
		session.StopWatch(o.session, watch)
		return nil, err
	}
	servers, err := parseEnsemble(string(resp.Data))
	switch {
	case err != nil:
		o.session.Report("the list of servers is not followed", o.fail(err)) // and the next one may be better
	case len(servers) > 0:
		o.session.Transport().SetServers(servers)
	}
	return event, nil
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
