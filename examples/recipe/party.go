// Package recipe is a recipe of a stranger's: kazoo's Party, written on package framework
// alone. Programs in Go and in Python are members of one party.
package recipe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
)

// mark is in the names of kazoo's nodes.
const mark = "__party__"

// Party is a group of programs that know who is there. A member is an ephemeral node, whose
// data says who it is.
type Party struct {
	client *framework.Client
	path   string
	id     string

	mu   sync.Mutex // guards what Follow has seen
	seen monitor.Entry
}

// New makes a party at path, in which this program is called id. It sends nothing.
func New(client *framework.Client, path, id string) *Party {
	return &Party{client: client, path: path, id: id}
}

// Join makes this program a member until leave is called, or the client is closed. The client
// makes the member's node again after the end of a session. Errors are those of Client.Keep.
func (p *Party) Join(ctx context.Context) (leave func(ctx context.Context) error, err error) {
	name := make([]byte, 16)
	_, _ = rand.Read(name) // never fails
	path := framework.MakePath(p.path, hex.EncodeToString(name)+mark)
	node, err := p.client.Keep(ctx, path, []byte(p.id), framework.Parents())
	if err != nil {
		return nil, fmt.Errorf("join party: %w", err)
	}
	return node.Remove, nil
}

// Members are the members' ids, in no order.
func (p *Party) Members(ctx context.Context) ([]string, error) {
	names, _, err := p.client.Children(ctx, p.path)
	switch {
	case errors.Is(err, framework.ErrNoNode): // nobody has joined yet
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("members of party: %w", err)
	}
	var reads []framework.Read
	for _, name := range names {
		if strings.Contains(name, mark) {
			reads = append(reads, framework.Read{Path: framework.MakePath(p.path, name)})
		}
	}
	results, err := p.client.ReadAll(ctx, reads...)
	if err != nil {
		return nil, fmt.Errorf("members of party: %w", err)
	}
	var ids []string
	for _, r := range results {
		switch {
		case r.Err == nil:
			ids = append(ids, string(r.Data))
		case !errors.Is(r.Err, framework.ErrNoNode): // that one has left since
			return nil, fmt.Errorf("members of party: %w", r.Err)
		}
	}
	return ids, nil
}

// Watch yields the members now, and again after each change. During an outage it yields
// nothing. The last result is an error, that of ctx or ErrClosed.
func (p *Party) Watch(ctx context.Context) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		sub, err := p.client.Subscribe(ctx, p.path)
		if err != nil {
			yield(nil, fmt.Errorf("watch party: %w", err))
			return
		}
		defer sub.Stop()
		for ev, err := range sub.Events(ctx) {
			if err == nil && ev.Type != framework.Established && ev.Type != framework.NodeChildrenChanged {
				continue
			}
			var members []string
			if err == nil {
				members, err = p.Members(ctx)
			}
			if framework.Retryable(err) { // Established follows
				continue
			}
			if !yield(members, err) || err != nil {
				return
			}
		}
	}
}

// Follow has the client's page and metrics show the party, with the number of its members,
// until stop is called, or the client is closed. Its log has why the members are not known.
func (p *Party) Follow() (stop func(), err error) {
	p.saw("loads", nil, nil)
	shown, err := p.client.Show(p.path, func() monitor.Entry {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.seen
	})
	if err != nil {
		return nil, fmt.Errorf("follow party: %w", err)
	}
	stop, err = p.client.Go(func(ctx context.Context) {
		defer shown.Remove()
		for members, err := range p.Watch(ctx) {
			switch {
			case ctx.Err() != nil:
				return
			case err != nil: // it is the last one
				p.saw("not known", nil, err)
			default:
				p.saw("known", members, nil)
			}
			shown.Changed()
		}
		<-ctx.Done() // the reason stays there to be seen
	})
	if err != nil {
		shown.Remove()
		return nil, fmt.Errorf("follow party: %w", err)
	}
	return stop, nil
}

func (p *Party) saw(state string, members []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen.State != state {
		p.seen.Since = time.Now()
	}
	p.seen.Kind, p.seen.State, p.seen.Err = "party", state, err
	p.seen.Numbers = map[string]int64{"members": int64(len(members))}
}
