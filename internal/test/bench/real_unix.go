//go:build unix

package main

import (
	"context"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/internal/test/realzk"
)

// startReal starts a ZooKeeper that is made for throughput.
func startReal(ctx context.Context) (server, func() error, error) {
	e, err := realzk.Start(ctx, realzk.Options{JVMArgs: []string{"-Xmx512m", "-XX:TieredStopAtLevel=4"}})
	if err != nil {
		return server{}, nil, err
	}
	return server{name: "ZooKeeper", addr: e.Addr(0)}, e.Close, nil
}

// processorTime is what this process has used, the servers that it has started left out.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
