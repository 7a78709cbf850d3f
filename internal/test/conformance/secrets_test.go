package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
)

// What nobody may read in a log.
const (
	password = "CanaryPassword"
	content  = "CanaryContent"
)

// transcript keeps everything that is logged, and how everything prints.
type transcript struct {
	mu  sync.Mutex // guards the field below
	log bytes.Buffer
}

// Write implements io.Writer.
func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *transcript) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// logger logs everything, in both forms.
func (w *transcript) logger() *zap.Logger {
	cfg := zap.NewProductionEncoderConfig()
	to := zapcore.AddSync(w)
	return zap.New(zapcore.NewTee(
		zapcore.NewCore(zapcore.NewJSONEncoder(cfg), to, zap.DebugLevel),
		zapcore.NewCore(zapcore.NewConsoleEncoder(cfg), to, zap.DebugLevel),
	), zap.AddStacktrace(zap.DebugLevel))
}

// saw prints values in every way, and logs them.
func (w *transcript) saw(values ...any) {
	for _, v := range values {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(w, format+"\n", v)
		}
		w.logger().Info("a value", zap.Any("value", v))
		if err, ok := v.(error); ok {
			w.logger().Info("an error", zap.Error(err))
		}
	}
}

// told lists in which form what was seen holds a secret.
func (w *transcript) told(secret string) (forms []string) {
	seen := w.text()
	lower := strings.ToLower(seen)
	for form, text := range map[string]string{
		"as it is":    secret,
		"hexadecimal": hex.EncodeToString([]byte(secret)),
		"numbers":     strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]"),
		"Go syntax":   strings.Trim(fmt.Sprintf("%#v", []byte(secret))[len("[]byte"):], "{}"),
	} {
		if strings.Contains(lower, strings.ToLower(text)) {
			forms = append(forms, form)
		}
	}
	// In base64 the ends depend on what stands beside it, so that only the middle is looked for.
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
		if strings.Contains(seen, text[4:len(text)-4]) {
			forms = append(forms, "base64")
		}
	}
	return forms
}

func clientSecrets(e *env) {
	w := new(transcript)
	w.saw(errors.New("here is " + password))
	w.saw([]byte(content))
	require.NotEmpty(e, w.told(password), "the witness is awake")
	require.Subset(e, w.told(content), []string{"hexadecimal", "numbers", "Go syntax", "base64"})
	w = new(transcript)

	auth := []framework.Auth{{Scheme: "digest", Data: []byte("user:" + password)}}
	var own framework.Config
	c := e.client(func(cfg *framework.Config) {
		cfg.Auth, cfg.Logger = auth, w.logger()
		cfg.Retry = retry.NTimes(2, 10*time.Millisecond).OnRetry(framework.LogRetries(cfg.Logger))
		own = *cfg
	})
	w.saw(own, auth, auth[0], &auth[0], c.Client, reflect.ValueOf(c.Client).Elem().Interface())
	w.saw(struct{ Auth []framework.Auth }{auth})
	defer c.States().Listen(func(listeners.State) { panic(errors.New("a listener's")) })()
	failures := c.Errors().Subscribe()
	defer failures.Stop()

	w.operations(e, c)
	for _, op := range []wire.Op{wire.OpCreate, wire.OpSetData, wire.OpGetData, wire.OpDelete, wire.OpMulti} {
		c.net.LoseReply(op, 1)
		w.operations(e, c)
		c.net.CutBefore(op, 1)
		w.operations(e, c)
	}
	w.locks(e, c)
	require.NoError(e, c.Conn().AddAuth("digest", []byte("raw:"+password)), "go-zookeeper presents it again")
	c.net.CutAll()
	w.operations(e, c)
	c.expire()
	w.operations(e, c)
	e.drain(w, failures)
	w.saw(c.Close())
	w.operations(e, c)

	for _, change := range []func(*framework.Config){
		func(cfg *framework.Config) {
			cfg.Auth = []framework.Auth{{Scheme: "nonsense", Data: []byte(password)}}
		},
		func(cfg *framework.Config) { cfg.SASL = sasl.DigestMD5("nobody", password) },
	} {
		refused := e.start(change, func(cfg *framework.Config) { cfg.Logger = w.logger(); w.saw(*cfg, cfg.SASL) })
		refused.gone = true
		failures := refused.Errors().Subscribe()
		defer failures.Stop()
		err := refused.BlockUntilConnected(e.soon())
		require.ErrorIs(e, err, framework.ErrAuthFailed)
		w.saw(err, refused.Client, reflect.ValueOf(refused.Client).Elem().Interface())
		w.operations(e, refused)
		e.drain(w, failures)
	}

	wrong := e.client(func(cfg *framework.Config) {
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("other:" + password)}}
		cfg.Logger = w.logger()
	})
	w.operations(e, wrong)
	owner := e.client(func(cfg *framework.Config) { cfg.Auth = auth })
	require.NoError(e, owner.Delete(e.soon(), "/secret", framework.AnyVersion, framework.Recursive(), framework.IfExists()))

	seen := w.text()
	for _, text := range []string{"connected", "retrying", "go-zookeeper", "lock lost", "listener panicked", "not authenticated", "outcome unknown"} {
		assert.Contains(e, seen, text, "the witness saw what there is")
	}
	assert.Empty(e, w.told(password))
	assert.Empty(e, w.told(content))
}

// drain prints what was told so far.
func (e *env) drain(w *transcript, failures *listeners.Subscription[error]) {
	for {
		select {
		case err := <-failures.C:
			w.saw(err)
		case <-time.After(100 * time.Millisecond):
			return
		}
	}
}

// operations does everything that a client can do, and prints what it gives
// except for what was read.
func (w *transcript) operations(e *env, c *client) {
	ctx := e.within(2 * time.Second)
	data := []byte(content)
	mine := framework.ACLs(zk.AuthACL(zk.PermAll)...)
	for _, mode := range []framework.Mode{framework.Persistent, framework.EphemeralSequential} {
		for _, opts := range [][]framework.CreateOption{
			{mine}, {framework.Parents()}, {framework.Protected()}, {framework.Idempotent()}, {framework.OrSet()}, {nil}, {framework.ACLs()},
		} {
			path, err := c.Create(ctx, "/secret", data, mode, opts...)
			w.saw(path, err)
		}
	}
	_, err := c.Create(ctx, "/large", bytes.Repeat(data, 100_000), framework.Persistent)
	w.saw(err)
	for _, path := range []string{"/secret", "/none", "bad"} {
		_, stat, err := c.Get(ctx, path)
		w.saw(stat, err)
		_, _, watch, err := c.GetW(ctx, path)
		w.saw(err)
		if err == nil {
			defer watch.Stop()
		}
		for _, version := range []int32{framework.AnyVersion, 77, -9} {
			stat, err = c.Set(ctx, path, data, version, framework.Idempotent())
			w.saw(stat, err)
			stat, err = c.SetACL(ctx, path, zk.DigestACL(zk.PermAll, "user", password), version)
			w.saw(stat, err)
		}
		_, stat, err = c.GetACL(ctx, path)
		w.saw(stat, err)
		tx := c.Transaction()
		tx.Check(path, 5)
		tx.Create("/in-transaction", data, framework.Persistent)
		tx.Set(path, data, 9)
		results, err := tx.Commit(ctx, framework.Idempotent())
		w.saw(results, err)
		w.saw(c.Sync(ctx, path), c.EnsurePath(ctx, path))
		w.saw(c.Delete(ctx, path, 99), c.Delete(ctx, path, framework.AnyVersion, framework.Recursive(), framework.IfExists()))
	}
}

// locks holds and loses locks whose nodes have data.
func (w *transcript) locks(e *env, c *client) {
	for _, k := range exclusive {
		path := "/lock-" + k.name
		lock := k.make(c, path, locks.NodeData([]byte(content)))
		hold, err := lock.Acquire(e.soon())
		require.NoError(e, err)
		w.saw(hold.State(), hold.Err(), hold.Path(), fmt.Sprint(hold.Context()))
		if queue, ok := lock.(interface {
			Participants(context.Context) ([]locks.Participant, error)
		}); ok {
			all, err := queue.Participants(e.soon())
			require.NoError(e, err)
			for i := range all {
				all[i].Data = nil // what was read is the reader's to print
			}
			w.saw(all)
		}
		other := e.client(func(cfg *framework.Config) { cfg.Logger = w.logger() })
		_, err = k.make(other, path, locks.NodeData([]byte(content))).TryAcquire(e.soon(), 300*time.Millisecond)
		require.ErrorIs(e, err, locks.ErrNotAcquired)
		w.saw(err)
		c.expire()
		e.done(hold.Context().Done(), "the lock is lost")
		w.saw(hold.Err(), hold.Release(), context.Cause(hold.Context()))
		require.NoError(e, c.BlockUntilConnected(e.soon()))
	}
}
