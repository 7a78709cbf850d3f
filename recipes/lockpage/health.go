package lockpage

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
)

// Ready is for a readiness probe of a service that needs its locks. It answers 200 while
// the client is connected to a server with a majority, and 503 otherwise.
func Ready(c *framework.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch c.Stats().State {
		case listeners.Connected, listeners.Reconnected:
			answer(w, http.StatusOK, c)
		default:
			answer(w, http.StatusServiceUnavailable, c)
		}
	})
}

// Live is for a liveness probe. It answers 503 once the client was closed, after which no
// lock can be had until the process ends, and 200 otherwise. A lost connection is no
// reason to restart a process.
func Live(c *framework.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if closed(r.Context(), c) {
			answer(w, http.StatusServiceUnavailable, c)
			return
		}
		answer(w, http.StatusOK, c)
	})
}

// closed is whether a client was closed. Nothing is waited for.
func closed(ctx context.Context, c *framework.Client) bool {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return errors.Is(c.BlockUntilConnected(ctx), framework.ErrClosed)
}

func answer(w http.ResponseWriter, status int, c *framework.Client) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, c)
}
