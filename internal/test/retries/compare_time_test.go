package retries

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-zk/paddock/retry"
	"github.com/paddock-zk/paddock/retry/retryhttp"
)

// column is one library, with its cells of the table.
type column struct {
	name, file string
	library
	lines   string        // of http, sql, rpc, upload, hedge
	waits   time.Duration // for Retry-After: 60 with 2 s left
	keeps   bool          // the 503 of that
	date    bool          // reads Retry-After as a date
	down    int64         // calls of 20 uploads of 8 parts at once,
	slow    int64         // of 20 hedged reads at once, and
	nested  int64         // of a loop in a loop; 0 where chance decides
	overrun bool          // a call runs when the hedged one has returned
	says    string        // the error after all attempts
}

var table = []column{
	{"retry", "paddock", paddock{}, "20 12 15 7 4", 0, true, true, 163, 23, 5, false, "retry shop: attempts used up after 5 attempts in "},
	{"failsafe-go 0.9.8", "failsafe", failsafeGo{}, "28 9 15 6 10", 2 * time.Second, false, false, 0, 0, 0, true, "retries exceeded. last result: 0, last error: HTTP 503"},
	{"backoff 5.0.3", "backoff5", backoff5{}, "25 11 11 8 4", 2 * time.Second, false, false, 800, 40, 25, true, "HTTP 503"},
	{"backoff 7.0.3", "backoff7", backoff7{}, "25 11 11 8 4", 2 * time.Second, true, false, 800, 40, 25, true, "backoff: retries exhausted (last error: HTTP 503)"},
	{"avast/retry-go 5.1.1", "avast", avastGo{}, "22 8 10 10 4", 2 * time.Second, true, false, 163, 40, 0, true, "All attempts fail:\n#1: HTTP 503\n#2: HTTP 503\n#3: HTTP 503\n#4: HTTP 503\n#5: HTTP 503"},
}

// each runs a part of the table in virtual time, for each library.
func each(t *testing.T, test func(t *testing.T, c column)) {
	t.Helper()
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			if spent, ok := c.library.(interface{ afresh() }); ok {
				spent.afresh() // its budget is full again
			}
			synctest.Test(t, func(t *testing.T) { test(t, c) })
		})
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	t.Logf("%s: %v", what, got)
	if got != want {
		t.Errorf("%s: %v, and not %v", what, got, want)
	}
}

// counted compares what is counted, where chance does not decide.
func counted(t *testing.T, got, want int64) {
	t.Helper()
	t.Logf("calls: %d", got)
	if want != 0 && got != want {
		t.Errorf("%d calls, and not %d", got, want)
	}
}

func TestLines(t *testing.T) {
	each(t, func(t *testing.T, c column) {
		equal(t, "lines", linesOf(t, c.file), c.lines)
	})
	equal(t, "lines of a hedge of one's own", linesOf(t, "hedged"), "27")
}

// linesOf counts the lines of code of each task, from the comment that names it.
func linesOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file + "_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code, _, _ := strings.Cut(string(text), "// end\n")
	var counts []string
	for _, task := range strings.Split(code, "// task ")[1:] {
		n := -1 // the name
		for line := range strings.Lines(task) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
		counts = append(counts, strconv.Itoa(n))
	}
	return strings.Join(counts, " ")
}

// server answers with one reply after the other, and then always with the last one.
type server struct {
	replies []reply
	asked   int
}

type reply struct {
	code  int
	after string
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	r := s.replies[min(s.asked, len(s.replies)-1)]
	s.asked++
	resp := &http.Response{StatusCode: r.code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("12")), Request: req}
	if r.after != "" {
		resp.Header.Set("Retry-After", r.after)
	}
	return resp, nil
}

func TestHTTP(t *testing.T) {
	each(t, func(t *testing.T, c column) {
		get := func(method string, limit time.Duration, replies ...reply) (int, time.Duration, error) {
			s := &server{replies: replies}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			_, err := c.http(ctx, &http.Client{Transport: s}, method, "http://shop.example")
			return s.asked, time.Since(start), err
		}
		asked, _, err := get(http.MethodGet, 9*time.Second, reply{429, "1"}, reply{503, ""}, reply{200, ""})
		equal(t, "429, 503, 200", asked, 3)
		equal(t, "error of that", err, nil)

		asked, _, _ = get(http.MethodPost, 9*time.Second, reply{503, ""})
		equal(t, "POST, 503", asked, 1)

		asked, _, _ = get(http.MethodGet, 9*time.Second, reply{404, ""})
		equal(t, "404", asked, 1)

		asked, _, err = get(http.MethodGet, 9*time.Second, reply{503, ""})
		equal(t, "503 for ever", asked, 5)
		equal(t, "says "+err.Error(), strings.HasPrefix(err.Error(), c.says), true)

		asked, waited, err := get(http.MethodGet, 2*time.Second, reply{503, "60"})
		equal(t, "Retry-After: 60, 2 s left", asked, 1)
		equal(t, "waits for", waited, c.waits)
		var status *statusError
		equal(t, "has the 503", errors.As(err, &status), c.keeps)
		equal(t, "has the deadline", errors.Is(err, context.DeadlineExceeded), true)

		_, waited, err = get(http.MethodGet, 9*time.Second, reply{503, time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat)}, reply{200, ""})
		equal(t, "Retry-After as a date is obeyed", waited >= 2*time.Second, c.date)
		equal(t, "error of that", err, nil)
	})
}

// Only the call says whether it may be repeated.
func TestCalls(t *testing.T) {
	each(t, func(t *testing.T, c column) {
		for _, idempotent := range []bool{true, false} {
			for code, want := range map[codeError]int{exhausted: 5, unavailable: 5, invalid: 1} {
				if code == unavailable && !idempotent {
					want = 1
				}
				calls := 0
				_, _ = c.rpc(t.Context(), idempotent, func(context.Context) (string, error) { calls++; return "", code })
				equal(t, code.Error(), calls, want)
			}
		}
	})
}

func TestNested(t *testing.T) {
	each(t, func(t *testing.T, c column) {
		var calls int64
		_, _ = c.rpc(t.Context(), true, func(ctx context.Context) (string, error) {
			return c.rpc(ctx, true, func(context.Context) (string, error) { calls++; return "", unavailable })
		})
		counted(t, calls, c.nested)
	})
}

func TestStoreIsDown(t *testing.T) {
	each(t, func(t *testing.T, c column) {
		var calls atomic.Int64
		var all sync.WaitGroup
		for range 20 * 8 {
			all.Go(func() {
				_ = c.part(t.Context(), func(context.Context) error {
					calls.Add(1)
					time.Sleep(time.Millisecond)
					return &statusError{Code: 503}
				})
			})
		}
		all.Wait()
		counted(t, calls.Load(), c.down)
	})
}

func TestHedge(t *testing.T) {
	each(t, func(t *testing.T, c column) {
		var calls, running atomic.Int64
		read := func(ctx context.Context) (string, error) {
			calls.Add(1)
			running.Add(1)
			defer running.Add(-1)
			select {
			case <-time.After(300 * time.Millisecond):
				return "ok", nil
			case <-ctx.Done():
				time.Sleep(time.Millisecond)
				return "", ctx.Err()
			}
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { _, _ = c.hedge(t.Context(), read) })
		}
		all.Wait()
		counted(t, calls.Load(), c.slow)
		time.Sleep(time.Second)
		calls.Store(0)
		_, err := c.hedge(t.Context(), func(ctx context.Context) (string, error) {
			if calls.Load() > 0 {
				return "ok", nil
			}
			return read(ctx)
		})
		equal(t, "error", err, nil)
		equal(t, "a call is running behind it", running.Load() > 0, c.overrun)
		time.Sleep(time.Second)
	})
}

func TestTransports(t *testing.T) {
	policy := failsafehttp.NewRetryPolicyBuilder().WithMaxRetries(4)
	for name, c := range map[string]struct {
		over  func(http.RoundTripper) http.RoundTripper
		posts int  // of a POST without a key
		keeps bool // the last response
	}{
		"retry": {func(s http.RoundTripper) http.RoundTripper {
			return &retryhttp.Transport{Base: s, Policy: retry.NTimes(4, 10*time.Millisecond)}
		}, 1, true},
		"failsafe-go 0.9.8": {func(s http.RoundTripper) http.RoundTripper { return failsafehttp.NewRoundTripper(s, policy.Build()) }, 5, false},
		"failsafe-go 0.9.8 with ReturnLastFailure": {func(s http.RoundTripper) http.RoundTripper {
			return failsafehttp.NewRoundTripper(s, failsafehttp.NewRetryPolicyBuilder().WithMaxRetries(4).ReturnLastFailure().Build())
		}, 5, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for method, want := range map[string]int{http.MethodPost: c.posts, http.MethodGet: 5} {
					s := &server{replies: []reply{{503, ""}}}
					req, err := http.NewRequestWithContext(t.Context(), method, "http://shop.example", strings.NewReader("x"))
					if err != nil {
						t.Fatal(err)
					}
					resp, err := (&http.Client{Transport: c.over(s)}).Do(req)
					equal(t, method+", 503", s.asked, want)
					equal(t, "returns the response", err == nil, c.keeps)
					if err == nil {
						_ = resp.Body.Close()
					}
				}
			})
		})
	}
}

// TestTransfers needs a PostgreSQL server: DB=postgres://user@host/database.
func TestTransfers(t *testing.T) {
	url := os.Getenv("DB")
	if url == "" {
		t.Skip("DB names no server")
	}
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) { transfers(t, c, url) })
	}
}

func transfers(t *testing.T, c column, url string) {
	t.Helper()
	ctx := t.Context()
	db, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{"drop table if exists a", "create table a(id int primary key, n int)", "insert into a select i, 100 from generate_series(0,3) i"} {
		if _, err = db.Exec(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	var tries, failed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 40 {
				from, to := rand.IntN(4), rand.IntN(4)
				if err := c.sql(ctx, func(ctx context.Context) error {
					tries.Add(1)
					return transfer(ctx, db, from, to)
				}); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	var sum int
	if err = db.QueryRow(ctx, "select sum(n) from a").Scan(&sum); err != nil {
		t.Fatal(err)
	}
	t.Logf("320 transfers: %d tries", tries.Load())
	equal(t, "sum", sum, 400)
	equal(t, "failed", failed.Load(), 0)
}

func transfer(ctx context.Context, db *pgxpool.Pool, from, to int) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, "select n from a where id=$1", from).Scan(&n); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "update a set n=$2 where id=$1", from, n-1); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update a set n=n+1 where id=$1", to)
		return err
	})
}
