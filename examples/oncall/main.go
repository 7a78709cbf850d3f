// Command oncall is a service that shows what its locks do: it logs, and it serves a page,
// metrics and probes. oncall.sh starts several, one of them stuck, and answers what the
// person on call would ask.
//
// It needs a server: oncall -servers zk1:2181,zk2:2181,zk3:2181 -http 127.0.0.1:8080
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor/monitorprom"
	"github.com/paddock-zk/paddock/recipes/lockpage"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func main() {
	servers := flag.String("servers", "127.0.0.1:2181", "the ZooKeeper servers")
	name := flag.String("name", "orders-1", "what others see of this service")
	address := flag.String("http", "127.0.0.1:0", "where the page, the metrics and the probes are served")
	work := flag.Duration("work", 30*time.Second, "how long the service works under the lock each time")
	stuck := flag.Bool("stuck", false, "never give the lock back")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *stuck {
		*work = 1000 * time.Hour
	}
	if err := run(ctx, *servers, *name, *address, *work); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers, name, address string, work time.Duration) (err error) {
	metrics := monitorprom.New()
	client, err := framework.Connect(ctx, framework.Config{
		ConnectString: servers,
		DefaultData:   fmt.Appendf(nil, "%s pid %d", name, os.Getpid()),
		Logger:        framework.SlogLogger(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Tracer:        metrics,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	metrics.Watch(client)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	mux := http.NewServeMux()
	mux.Handle("/debug/locks", lockpage.Handler(client))
	mux.Handle("/ready", lockpage.Ready(client))
	mux.Handle("/live", lockpage.Live(client))
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer func() { _ = srv.Close() }()
	go func() { _ = srv.Serve(listener) }() // until Close
	slog.Info("serving", "address", "http://"+listener.Addr().String())

	lock := locks.NewInterProcessMutex(client, "/locks/orders")
	for ctx.Err() == nil {
		err := locks.Do(ctx, lock, func(ctx context.Context) error {
			select { // this is where work would be done
			case <-time.After(work):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		if err != nil && !errors.Is(err, locks.ErrLockLost) {
			return err
		}
	}
	return nil
}
