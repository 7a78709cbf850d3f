package framework

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/dns"
)

const (
	listEvery       = 10 * time.Second // how often a list of servers is asked for
	listEveryOutage = time.Second      // while there is no connection
)

// ServersInFile is a Config.ServerList that reads a file: host:port pairs, separated by
// commas or line ends, as in a connection string without a chroot. Replace the file by
// renaming another one, so that nobody reads the half of it. A pipe or a device is refused. The
// read does not see the end of its context, so the file should not be on a disk of the network.
func ServersInFile(name string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) {
		if _, err := regular(name); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		servers, err := parseServers(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ","))
		if err != nil {
			return nil, fmt.Errorf("file %s %w", name, err)
		}
		return servers, nil
	}
}

// parseServers is parseConnectString for servers alone.
func parseServers(text string) ([]string, error) {
	servers, chroot, err := parseConnectString(text)
	if err == nil && chroot != "" {
		err = errors.New("has a chroot: it belongs in ConnectString")
	}
	return servers, err
}

// ServersBySRV is a Config.ServerList that asks DNS for the SRV records of a name, such as
// "_client._tcp.zk.default.svc.cluster.local". Priorities and weights do not count. With TLS the
// certificates have to be for the names in the records. Whoever can forge records names the
// servers, so trust no other CA than that of your own.
func ServersBySRV(name string) func(context.Context) ([]string, error) {
	return serversBySRV(name, dns.Resolver().LookupSRV)
}

func serversBySRV(name string, lookUp func(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		_, records, err := lookUp(ctx, "", "", name)
		var servers []string
		for _, r := range records {
			if r.Target == "." { // says that there is no such service
				continue
			}
			servers = append(servers, net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port))))
		}
		return servers, err
	}
}

// followList asks for the list of servers again and again, until ctx ends.
func (b *base) followList(ctx context.Context) {
	var asked time.Time
	for failing := false; ; {
		if time.Since(asked) >= listEvery || !b.session.State().IsConnected() {
			asked = time.Now()
			err := b.askForList(ctx)
			if err != nil && !failing && ctx.Err() == nil { // its text may be another one each time, as a resolver's has its port
				b.session.Report("the list of servers is not followed", &OpError{Op: "list servers of", Path: b.plan.ConnectString, Err: err})
			}
			failing = err != nil
		}
		select {
		case <-time.After(listEveryOutage):
		case <-ctx.Done():
			return
		}
	}
}

// askForList asks once.
func (b *base) askForList(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.plan.ConnectTimeout)
	defer cancel()
	given, err := b.plan.ServerList(ctx)
	if err != nil {
		return err
	}
	var servers []string
	for _, entry := range given {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		some, err := parseServers(entry)
		if err != nil {
			return err
		}
		servers = append(servers, some...)
	}
	slices.Sort(servers)
	servers = slices.Compact(servers)
	if len(servers) == 0 {
		return errors.New("the list is empty")
	}
	b.session.Transport().SetServers(servers)
	return nil
}
