// Command retry shows package retry around an HTTP client. No ZooKeeper is
// involved: the package is for a whole codebase.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/retry"
)

// shop is one policy for one dependency, in a package variable: which delays,
// which failures, and how many retries for all callers together.
var shop = retry.ExponentialBackoff(10*time.Millisecond, 4).Named("shop").
	WithJitter(retry.FullJitter).
	WithAttemptTimeout(time.Second).
	WithBudget(retry.NewBudget(20, 0.1)).
	WithClassifier(retry.As(judge))

// statusError is an answer that is no success.
type statusError int

func (e statusError) Error() string { return http.StatusText(int(e)) }

// judge says which failures may pass. What it has no opinion on, such as a
// connection that breaks, is tried again.
func judge(e statusError) retry.Decision {
	switch {
	case e == http.StatusTooManyRequests:
		return retry.Again // refused before anything happened
	case e >= http.StatusInternalServerError:
		return retry.Unsure // it may have happened: again only what is idempotent
	}
	return retry.Stop
}

func main() {
	// Delays and counts may be set without a new build:
	// go run ./examples/retry -shop-retry "ntimes retries=2 sleep=5ms"
	flag.TextVar(&shop, "shop-retry", shop, "retry `policy` for the shop")
	flag.Parse()
	if err := run(context.Background(), log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out *log.Logger) (err error) {
	url, stop, err := serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	// A hook sees each retry; retry.LogTo makes one that logs.
	policy := shop.OnRetry(func(_ context.Context, a retry.Attempt) {
		out.Printf("  attempt %d: %v", a.Number, a.Err)
	})

	out.Println("GET, which may be repeated:")
	text, err := retry.DoValue(ctx, policy, func(ctx context.Context) (string, error) {
		return call(ctx, http.MethodGet, url+"/price")
	}, retry.Idempotent())
	if err != nil {
		return err
	}
	out.Println("  it costs", text)

	out.Println("POST, which may not:")
	_, err = retry.DoValue(ctx, policy, func(ctx context.Context) (string, error) {
		return call(ctx, http.MethodPost, url+"/orders")
	})
	var e *retry.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("the order ended with %w", err)
	}
	out.Printf("  given up after %d attempt: %v, %v", e.Attempts, e.Last, e.Reason)
	return nil
}

// call makes one request. It reads the body itself, since its context ends when
// it returns.
func call(ctx context.Context, method, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return "", retry.Mark(err, retry.Stop)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", statusError(resp.StatusCode)
	}
	return string(body), nil
}

// serve is a shop that fails: twice before it names a price, and always in
// taking an order.
func serve(ctx context.Context) (url string, stop func() error, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /price", func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = io.WriteString(w, "12 pounds")
		}
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() error {
		err := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}, nil
}
