// Package playground gives the examples a ZooKeeper: a server in their own
// process, or the ensemble that the environment variable ZK_CONNECT_STRING names.
package playground

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Variable is the environment variable that names an ensemble to use, as
// host:port pairs, separated by commas, which may end in a chroot.
const Variable = "ZK_CONNECT_STRING"

const (
	// patience is how long to wait for a server to answer at all.
	patience = 15 * time.Second
	// cleanUp bounds the removal of what an example has left.
	cleanUp = 10 * time.Second
)

// Playground is a ZooKeeper with a chroot that belongs to one run of one
// example, so that an ensemble in use elsewhere is safe to play with.
type Playground struct {
	// ConnectString is for the example's clients. It ends in the chroot.
	ConnectString string

	root   string
	keeper *framework.Client
	server *zktest.Server // nil on somebody else's ensemble
}

// Open makes a playground on the ensemble that servers name or, if that is
// empty, on a server of its own, which the options are for. Close it.
func Open(ctx context.Context, name, servers string, opts ...zktest.Option) (*Playground, error) {
	p := &Playground{root: "/paddock-" + name + "-" + rand.Text()[:8]}
	if err := p.open(ctx, servers, opts); err != nil {
		_ = p.Close() //nolint:contextcheck // has a limit of its own, and err tells more
		return nil, err
	}
	return p, nil
}

func (p *Playground) open(ctx context.Context, servers string, opts []zktest.Option) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if servers == "" {
		if p.server, err = zktest.New(opts...); err != nil { //nolint:contextcheck // the server outlives the call
			return err
		}
		servers = p.server.ConnectString()
	}
	if p.keeper, err = framework.Connect(ctx, framework.Config{ConnectString: servers}); err != nil {
		return err
	}
	// No container, which the ensemble would remove while it is empty.
	if _, err = p.keeper.Create(ctx, p.root, nil, framework.Persistent); err != nil {
		return err
	}
	p.ConnectString = servers + p.root
	return nil
}

// Close removes the chroot with all that is in it, and ends the server. Close
// the example's own clients first.
func (p *Playground) Close() error {
	var errs []error
	if p.keeper != nil {
		ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
		defer cancel()
		if err := p.keeper.Delete(ctx, p.root, framework.AnyVersion, framework.Recursive(), framework.IfExists()); err != nil {
			errs = append(errs, fmt.Errorf("left behind: %w", err))
		}
		errs = append(errs, p.keeper.Close())
	}
	if p.server != nil {
		errs = append(errs, p.server.Close())
	}
	return errors.Join(errs...)
}
