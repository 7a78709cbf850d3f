package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// told keeps what is written to it.
type told struct {
	mu sync.Mutex // guards the field below
	b  strings.Builder
}

// Write implements io.Writer.
func (w *told) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *told) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// What a client presents to prove who it is comes out nowhere: not in the log, in
// no answer of the control port and to none of the four-letter words.
func TestNothingTellsThePassword(t *testing.T) {
	const password = "CanaryOfTheServer"
	var all told
	connect, control := startLogging(t, &all, "-transcript")
	mine, other := dial(t, connect), dial(t, connect)
	require.NoError(t, mine.AddAuth("digest", []byte("somebody:"+password)))
	_, err := mine.Create("/mine", nil, zk.FlagEphemeral, zk.AuthACL(zk.PermAll))
	require.NoError(t, err)
	_, _, _, err = mine.GetW("/mine")
	require.NoError(t, err)
	_, _, err = other.Get("/mine")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_ = other.AddAuth("nonsense", []byte(password)) // refused, and the connection with it

	for _, path := range []string{"/", "/sessions", "/watches", "/ephemerals", "/counters", "/requests", "/dump", "/transcript", "/leader", "/rules"} {
		status, answer := ask(t, "GET", control, path)
		require.Equal(t, 200, status, path)
		fmt.Fprintln(&all, path, answer)
	}
	for _, word := range zktest.Words() {
		fmt.Fprintln(&all, word, fourLetters(t, connect, word))
	}
	seen := all.text()
	for _, text := range []string{"serving", "/transcript", "auth", "/mine", "zk_znode_count", "Auth=(26 bytes)"} {
		require.Contains(t, seen, text, "everything was asked for")
	}
	for _, form := range []string{
		password, fmt.Sprintf("%x", password), strings.Trim(fmt.Sprintf("%d", []byte(password)), "[]"),
		base64.StdEncoding.EncodeToString([]byte(password))[:20], base64.StdEncoding.EncodeToString([]byte("somebody:" + password))[:32],
	} {
		assert.False(t, strings.Contains(strings.ToLower(seen), strings.ToLower(form)), "it tells %q", form)
	}
}

func fourLetters(t *testing.T, connect, word string) string {
	t.Helper()
	nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", connect)
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(nc, word)
	require.NoError(t, err)
	answer, err := io.ReadAll(nc)
	require.NoError(t, err)
	return string(answer)
}
