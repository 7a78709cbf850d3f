//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

const (
	crowdTop     = "/crowd"
	crowdNodes   = 1000
	crowdClients = 200
	crowdWrites  = 1000
)

// crowd measures many clients with a cache of one tree, on three servers of their own, while a
// writer changes 100 nodes a second, and then as the leader is killed.
func (c *comparison) crowd(ctx context.Context) error {
	fmt.Printf("\n%d clients with a cache of %d nodes, on three servers, a writer changes 100 nodes a second\n", crowdClients, crowdNodes)
	fmt.Print("| | a change: requests | packets to clients | servers' processor ms | the leader is killed: requests, until 2 s after all have seen a later write | ms until then |\n| --- | --: | --: | --: | --: | --: |\n")
	for _, p := range c.peers {
		if p.cycles { // not kazoo
			if err := c.crowdOf(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *comparison) crowdOf(ctx context.Context, p *peer) (err error) {
	others := children()
	servers, err := realzk.Start(ctx, realzk.Options{Servers: 3, JVMArgs: []string{"-Xmx512m", "-XX:TieredStopAtLevel=4"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	processes := slices.DeleteFunc(children(), func(pid int) bool { return slices.Contains(others, pid) })
	writer, err := framework.Connect(ctx, framework.Config{ConnectString: servers.ConnectString(), SessionTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, writer.Close()) }()
	if err := writer.EnsurePath(ctx, crowdTop); err != nil {
		return err
	}
	path := func(i int) string { return fmt.Sprintf("%s/node-%04d", crowdTop, i%crowdNodes) }
	for i := 0; i < crowdNodes; i += 100 {
		tx := writer.Transaction()
		for j := range 100 {
			tx.Create(path(i+j), make([]byte, size), framework.Persistent)
		}
		if _, err := tx.Commit(ctx); err != nil {
			return err
		}
	}
	if _, err := p.ask("crowd %d %s %s %s", crowdClients, servers.ConnectString(), p.kind, crowdTop); err != nil {
		return err
	}
	write := func(n int) error {
		for i := range n {
			began := time.Now()
			if _, err := writer.Set(ctx, path(i), fmt.Appendf(nil, "%*d", size, i), framework.AnyVersion); err != nil {
				return err
			}
			if err := pause(ctx, 10*time.Millisecond-time.Since(began)); err != nil {
				return err
			}
		}
		_, err := p.ask("await %d", n*crowdClients)
		return err
	}
	if err := write(100); err != nil { // the compilers see it
		return err
	}
	if _, err := p.ask("forget"); err != nil {
		return err
	}
	all := []int{0, 1, 2}
	asked, told, err := packets(ctx, servers, all)
	if err != nil {
		return err
	}
	began := processorTime(processes)
	if err := write(crowdWrites); err != nil {
		return err
	}
	used := processorTime(processes) - began
	askedThen, toldThen, err := packets(ctx, servers, all)
	if err != nil {
		return err
	}
	leader, err := servers.Leader(ctx)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(all, func(i int) bool { return i == leader })
	before, _, err := packets(ctx, servers, left)
	if err != nil {
		return err
	}
	if _, err := p.ask("forget"); err != nil {
		return err
	}
	killed := time.Now()
	if err := servers.Kill(leader); err != nil {
		return err
	}
	for {
		if _, err = writer.Set(ctx, path(0), make([]byte, size), framework.AnyVersion); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err == nil {
		_, err = p.ask("await %d", crowdClients)
	}
	took := time.Since(killed)
	if err = errors.Join(err, pause(ctx, 2*time.Second)); err != nil {
		return err
	}
	after, _, err := packets(ctx, servers, left)
	if err != nil {
		return err
	}
	if after < before { // they count anew with a new leader
		before = 0
	}
	fmt.Printf("| %s | %d | %d | %.2f | %d | %d |\n", p.name, (askedThen-asked)/crowdWrites, (toldThen-told)/crowdWrites,
		used.Seconds()*1000/crowdWrites, after-before, took.Milliseconds())
	_, err = p.ask("close")
	return err
}

// packets are those that members have received and sent.
func packets(ctx context.Context, servers *realzk.Ensemble, members []int) (received, sent int, err error) {
	for _, i := range members {
		answer, err := servers.FourLetter(ctx, i, "mntr")
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(answer) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
			n, _ := strconv.Atoi(value)
			switch name {
			case "zk_packets_received":
				received += n
			case "zk_packets_sent":
				sent += n
			}
		}
	}
	return received, sent, nil
}
