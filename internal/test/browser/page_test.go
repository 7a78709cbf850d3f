// Package browser opens the page of locks in Chromium, and clicks through it.
package browser

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/lockpage"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the pictures of docs/pictures")

// shop is three services that share locks, and the page of the first.
type shop struct {
	address string
	first   *framework.Client
	history *lockpage.History
	orders  *locks.Hold // which the second service has
}

const hostile = `<img src=x onerror="alert(1)"><script>alert(2)</script>`

func open(t *testing.T) *shop {
	t.Helper()
	srv := zktest.Start(t)
	client := func(participant string) *framework.Client {
		return kit.Connect(t, srv, func(cfg *framework.Config) { cfg.DefaultData = []byte(participant) })
	}
	s := &shop{history: new(lockpage.History)}
	s.first = kit.Connect(t, srv, func(cfg *framework.Config) { cfg.DefaultData, cfg.Tracer = []byte("checkout-1 pid 4711"), s.history })
	second, third := client("checkout-2 pid 4712"), client(hostile)
	mutex := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
	s.orders = kit.Hold(t, mutex(second, "/locks/orders"))
	wait(t, s.first, mutex(s.first, "/locks/orders"))
	wait(t, third, mutex(third, "/locks/orders"))
	kit.Hold(t, mutex(s.first, "/locks/<b>reports</b>"))
	kit.Hold(t, locks.NewInterProcessReadWriteLock(s.first, "/locks/prices").ReadLock())
	wait(t, third, mutex(third, "/locks/<b>reports</b>"))
	lost := kit.Hold(t, mutex(s.first, "/locks/stock"))
	require.NoError(t, second.Delete(t.Context(), lost.Path(), framework.AnyVersion))
	<-lost.Context().Done()
	multi := locks.NewInterProcessMultiLock(mutex(s.first, "/accounts/7"), mutex(s.first, "/accounts/9"))
	kit.Hold(t, multi)

	mux := http.NewServeMux()
	mux.Handle("/debug/locks", lockpage.Handler(s.first, lockpage.AllowBreak(func(*http.Request) bool { return true }), lockpage.Remember(s.history),
		lockpage.LinkTo(func(participant string) string {
			name, _, _ := strings.Cut(participant, " ")
			return "http://" + name + ":8080/debug/locks"
		})))
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	s.address = web.URL + "/debug/locks"
	return s
}

// wait queues for a lock, and gives it back when it has it or the test ends.
func wait(t *testing.T, c *framework.Client, lock locks.Lock) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if h, err := lock.Acquire(ctx); err == nil {
			<-ctx.Done()
			_ = h.Release()
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	require.Eventually(t, func() bool {
		w := c.Waiters()
		return len(w) > 0 && w[len(w)-1].Ahead > 0
	}, 5*time.Second, time.Millisecond)
}

// tab is a tab of a Chromium, with what went wrong in it.
type tab struct {
	context.Context
	mu    sync.Mutex
	wrong []string
}

func newTab(t *testing.T) *tab {
	t.Helper()
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1100, 700))...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &tab{Context: ctx}
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(ctx)) })
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *page.EventJavascriptDialogOpening:
			b.wrong = append(b.wrong, "a dialog: "+e.Message)
		case *runtime.EventExceptionThrown:
			b.wrong = append(b.wrong, "an exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if !strings.Contains(e.Entry.URL, "favicon.ico") { // which a browser asks each site for
				b.wrong = append(b.wrong, "the console: "+e.Entry.Text)
			}
		}
	}))
	return b
}

// do makes one step after the other, in a time that is long for each.
func (b *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, step := range steps {
		result(t, b, step)
	}
}

func result[T any](t *testing.T, b *tab, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, 20*time.Second)
	defer cancel()
	got, err := chromedp.Run(ctx, a)
	require.NoError(t, err)
	return got
}

// text is what a person reads.
func (b *tab) text(t *testing.T) string {
	t.Helper()
	return result(t, b, chromedp.Text(chromedp.CSS("body")))
}

// theme makes the browser light or dark, and returns the colour behind the page.
func (b *tab) theme(t *testing.T, name string) (colour string) {
	t.Helper()
	_, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	require.NoError(t, err)
	return result(t, b, chromedp.Evaluate[string](`getComputedStyle(document.body).backgroundColor`))
}

// size makes the page as wide as a phone; 0 for the width of the window.
func (b *tab) size(t *testing.T, width int64) {
	t.Helper()
	height := 2 * width
	_, err := chromedp.Call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, Mobile: width > 0})
	require.NoError(t, err)
}

// picture is kept for the docs with -update.
func (b *tab) picture(t *testing.T, name string) {
	t.Helper()
	png := result(t, b, chromedp.FullScreenshot(100))
	require.NotEmpty(t, png)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("../../../docs/pictures", name+".png"), png, 0o600))
	}
}

func TestPageInChromium(t *testing.T) {
	s := open(t)
	b := newTab(t)
	b.do(t, chromedp.Navigate(s.address))
	text := b.text(t)
	for _, part := range []string{"CONNECTED", "Held: 4", "Waiting: 1", "/locks/<b>reports</b>", "read lock", "of a multilock", "1 ahead", "checkout-2 pid 4712", "Lost: the last 1", "/locks/stock"} {
		assert.Contains(t, text, part)
	}
	light := b.theme(t, "light")
	b.picture(t, "page-light")
	dark := b.theme(t, "dark")
	b.picture(t, "page-dark")
	assert.NotEqual(t, light, dark, "the page has a style, and one for each theme")
	assert.NotEqual(t, "rgba(0, 0, 0, 0)", light)

	// On a phone nothing is wider than the screen, in both themes.
	b.size(t, 390)
	assert.LessOrEqual(t, result(t, b, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)), 390)
	b.picture(t, "phone-dark")
	b.theme(t, "light")
	b.picture(t, "phone-light")
	b.theme(t, "dark")
	b.size(t, 0)

	// By a filter, and a click to the queue, as the servers have it.
	b.do(t, chromedp.Navigate(s.address+"?filter=prices&sort=waiters"))
	assert.Contains(t, b.text(t), "Held: 1")
	b.do(t, chromedp.Navigate(s.address))
	b.do(t, chromedp.Click(chromedp.Search(`//td/a[text()="/locks/orders"]`)), chromedp.WaitVisible(chromedp.Search(`//summary`)))
	text = b.text(t)
	for _, part := range []string{"A mutex.", "checkout-2 pid 4712", "checkout-1 pid 4711", hostile, "Break"} {
		assert.Contains(t, text, part)
	}
	b.picture(t, "queue-dark")
	b.theme(t, "light")
	b.picture(t, "queue-light")

	// The holder is stuck. Its node is deleted, by two clicks.
	b.do(t, chromedp.Click(chromedp.Search(`//tr[2]//summary`)), chromedp.Click(chromedp.Search(`//tr[2]//form/button`)), chromedp.WaitVisible(chromedp.Search(`//p[@role="status"]`)))
	assert.Contains(t, b.text(t), "Deleted: "+s.orders.Path())
	<-s.orders.Context().Done()
	require.ErrorIs(t, s.orders.Err(), locks.ErrLockLost)
	require.Eventually(t, func() bool { return len(s.first.Waiters()) == 0 }, 5*time.Second, time.Millisecond, "the next one has it")

	b.do(t, chromedp.Click(chromedp.Search(`//a[text()="Refresh every 5 s"]`)), chromedp.WaitVisible(chromedp.Search(`//a[text()="Stop refreshing"]`)))
	shown := chromedp.Text(chromedp.CSS("nav span")) // the time
	old := result(t, b, shown)
	require.Eventually(t, func() bool {
		now, err := chromedp.Run(b, shown) // an error where the page goes between the look for it and the text
		return err == nil && now != old
	}, 10*time.Second, 100*time.Millisecond, "the page loads itself again")
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.wrong)
}

// Everything that is to be read is there without a script.
func TestPageWithoutScripts(t *testing.T) {
	s := open(t)
	b := newTab(t)
	_, err := chromedp.Call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	b.do(t, chromedp.Navigate(s.address+"?path=/locks/orders"))
	text := b.text(t)
	for _, part := range []string{"A mutex.", "checkout-2 pid 4712", hostile} {
		assert.Contains(t, text, part)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.wrong)
}
