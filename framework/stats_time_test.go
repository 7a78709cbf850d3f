package framework_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Recipes show what they like, several at one path too, and all clients of a session show it.
func TestShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		ns := c.UsingNamespace("ns")
		assert.Empty(t, c.Entries())
		since := time.Now()
		entry := monitor.Entry{
			Kind: "party", State: "full", Since: since, Behind: "/doorman", Note: "loud", Numbers: map[string]int64{"guests": 71},
			Path: "as the client says, and not as the recipe does",
		}
		show := func(c *framework.Client, path string) *framework.Shown {
			shown, err := c.Show(path, func() monitor.Entry { return entry })
			require.NoError(t, err)
			return shown
		}
		all := []*framework.Shown{show(ns, "/b"), show(c, "/a"), show(ns, "/b")}
		var paths []string
		for _, e := range ns.Entries() {
			paths = append(paths, e.Path)
			e.Path = entry.Path
			assert.Equal(t, entry, e)
		}
		assert.Equal(t, []string{"/a", "/ns/b", "/ns/b"}, paths)
		all[0].Remove()
		all[0].Remove()
		assert.Len(t, c.Entries(), 2)

		_, err := c.Show("a", func() monitor.Entry { return entry })
		require.ErrorIs(t, err, framework.ErrInvalidPath)
		_, err = c.Show("/a", nil)
		require.ErrorIs(t, err, framework.ErrInvalidArgument)
		require.NoError(t, c.Close())
		for _, over := range []*framework.Client{c, new(framework.Client)} {
			_, err = over.Show("/a", func() monitor.Entry { return entry })
			require.ErrorIs(t, err, framework.ErrClosed)
		}
		assert.Empty(t, new(framework.Client).Entries())
	})
}

// The log has each reason once, and when it is gone. Of the connection the client has told.
func TestShownChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		log, logs := observer.New(zapcore.InfoLevel)
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Logger = zap.New(log) })
		var now atomic.Pointer[monitor.Entry]
		now.Store(new(monitor.Entry))
		shown, err := c.Show("/a", func() monitor.Entry { return *now.Load() })
		require.NoError(t, err)
		for _, e := range []monitor.Entry{
			{State: "open"},
			{State: "closed", Err: framework.ErrNotConnected},
			{State: "full", Err: errors.New("71 guests")},
			{State: "full", Err: errors.New("71 guests")},
			{State: "full", Err: errors.New("72 guests")},
			{State: "closed", Err: framework.ErrNotConnected},
			{State: "full", Err: errors.New("72 guests")},
			{State: "open"},
			{State: "open"},
		} {
			e.Kind = "party"
			now.Store(&e)
			shown.Changed()
		}
		type line struct {
			level       zapcore.Level
			text, cause string
		}
		var lines []line
		for _, l := range logs.FilterField(zap.String("kind", "party")).FilterField(zap.String("path", "/a")).All() {
			cause, _ := l.ContextMap()["error"].(string)
			lines = append(lines, line{l.Level, l.Message, cause})
		}
		assert.Equal(t, []line{
			{zapcore.WarnLevel, "party is full", "71 guests"}, {zapcore.WarnLevel, "party is full", "72 guests"}, {zapcore.InfoLevel, "party is open", ""},
		}, lines)
	})
}

// An error of a recipe's may call Changed itself.
func TestShownErrorThatCallsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		var now atomic.Pointer[monitor.Entry]
		now.Store(new(monitor.Entry))
		shown, err := c.Show("/a", func() monitor.Entry { return *now.Load() })
		require.NoError(t, err)
		called := 0
		now.Store(&monitor.Entry{Err: nosyError(func() {
			called++
			now.Store(new(monitor.Entry))
			shown.Changed()
		})})
		shown.Changed()
		assert.NotZero(t, called)
	})
}

type nosyError func()

func (e nosyError) Error() string { e(); return "nosy" }

func (e nosyError) Is(error) bool { e(); return false }

// The Shown of a Show that has failed is nil.
func TestShownIsNil(t *testing.T) {
	s, err := new(framework.Client).Show("/a", func() monitor.Entry { return monitor.Entry{} })
	require.ErrorIs(t, err, framework.ErrClosed)
	for _, s := range []*framework.Shown{s, {}} {
		s.Changed()
		s.Remove()
	}
}

func TestReportOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		told := make(chan error, 2)
		c.Errors().Listen(func(err error) { told <- err })
		c.Report("nothing", nil)
		c.Report("something", errors.New("failed"))
		require.EqualError(t, <-told, "failed")
	})
}

func TestEntriesOfOnePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		for _, kind := range []string{"c", "a", "d", "b"} {
			_, err := c.Show("/a", func() monitor.Entry { return monitor.Entry{Kind: kind} })
			require.NoError(t, err)
		}
		var kinds []string
		for _, e := range c.Entries() {
			kinds = append(kinds, e.Kind)
		}
		assert.Equal(t, []string{"a", "b", "c", "d"}, kinds)
	})
}
