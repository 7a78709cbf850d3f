package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework/sasl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFresh(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		life, left time.Duration
		want       bool
	}{
		{10 * time.Hour, time.Hour, true},
		{10 * time.Hour, 5*time.Minute + 1, true},
		{10 * time.Hour, 5 * time.Minute, false},
		{10 * time.Second, 2*time.Second + 1, true},
		{10 * time.Second, 2 * time.Second, false},
		{10 * time.Second, 0, false},
		{10 * time.Second, -time.Second, false},
	} {
		tkt := &ticket{from: now.Add(tc.left - tc.life), till: now.Add(tc.left)}
		assert.Equal(t, tc.want, tkt.fresh(now), "%v of %v", tc.left, tc.life)
	}
}

// A ticket is used again until it ends soon, or a server has seen and not accepted it.
func TestTicketsAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		s := newSession(alice, &ticket{from: now, till: now.Add(time.Hour)})
		t1 := &ticket{from: now, till: now.Add(10 * time.Minute)}
		conf := realms{config.New(), fakeKDCs(t, nil)}
		conf.Realms = []config.Realm{{Realm: alice.realm, KDC: []string{"none:88"}}}
		got := func() *ticket { tkt, _ := s.ticketFor(t.Context(), conf, server); return tkt }
		assert.Nil(t, got())
		s.shown(server, t1, true)
		assert.Same(t, t1, got())
		assert.Same(t, t1, got(), "by several connections")
		s.shown(server, t1, false)
		assert.Nil(t, got())
		s.shown(server, t1, true)
		time.Sleep(8*time.Minute - 1)
		assert.Same(t, t1, got())
		time.Sleep(time.Nanosecond)
		assert.Nil(t, got(), "a fifth of its life is left")
		t2 := &ticket{from: now, till: now.Add(time.Hour)}
		s.shown(server, t2, true)
		s.shown(server, t1, false)
		assert.Same(t, t2, got(), "another one was refused")
	})
}

// fakeKDCs answer requests, by their addresses: "silent" does not, for nil they hang up, and
// whoever is not there cannot be dialed.
func fakeKDCs(t *testing.T, answers map[string][]byte) func(ctx context.Context, network, addr string) (net.Conn, error) {
	t.Helper()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return func(_ context.Context, network, addr string) (net.Conn, error) {
		reply, ok := answers[addr]
		if !ok {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("nobody is there")}
		}
		ours, theirs := net.Pipe()
		wg.Go(func() {
			defer func() { _ = theirs.Close() }()
			var size [4]byte
			if _, err := io.ReadFull(theirs, size[:]); err != nil {
				return
			}
			if _, err := io.CopyN(io.Discard, theirs, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
				return
			}
			switch {
			case addr == "silent:88":
				_, _ = io.Copy(io.Discard, theirs) // until the client hangs up
			case reply != nil:
				_, _ = theirs.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...))
			}
		})
		return ours, nil
	}
}

// refusal is what a KDC refuses with.
func refusal(t *testing.T, code int32, skew time.Duration) []byte {
	t.Helper()
	e := messages.NewKRBError(krbtgt(alice.realm), alice.realm, code, "")
	e.STime = e.STime.Add(skew)
	b, err := e.Marshal()
	require.NoError(t, err)
	return b
}

// login asks KDCs for a first ticket.
func login(ctx context.Context, t *testing.T, answers map[string][]byte, kdcs ...string) error {
	t.Helper()
	keys, err := keysOf(t, alice, "secret", 18).Marshal()
	require.NoError(t, err)
	text := "[libdefaults]\n  default_realm = EXAMPLE.ORG\n[realms]\n  EXAMPLE.ORG = {\n"
	for _, name := range kdcs {
		text += "    kdc = " + name + ":88\n"
	}
	m := Keytab(file(t, "alice.keytab", string(keys)), "alice", ConfigFile(file(t, "krb5.conf", text+"  }\n")),
		func(o *options) { o.dial = fakeKDCs(t, answers) }, HostsAsWritten())
	_, err = m.Begin(ctx, sasl.Server{Host: "zk", Addr: "127.0.0.1:2181"})
	require.Error(t, err)
	return err
}

func TestRefusalsOfAKDC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, answer := range map[string][]byte{
			"the KDC of EXAMPLE.ORG does not know the client alice@EXAMPLE.ORG":                                           refusal(t, errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN, 0),
			"the KDC of EXAMPLE.ORG does not know the server krbtgt/EXAMPLE.ORG@EXAMPLE.ORG: connect by the name":         refusal(t, errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN, 0),
			"the KDC of EXAMPLE.ORG has another key for alice@EXAMPLE.ORG than ":                                          refusal(t, errorcode.KDC_ERR_PREAUTH_FAILED, 0),
			"the clock of the KDC of EXAMPLE.ORG differs from this machine's by 20m0s: set the clocks":                    refusal(t, errorcode.KRB_AP_ERR_SKEW, 20*time.Minute),
			"the KDC of EXAMPLE.ORG says that the ticket of alice@EXAMPLE.ORG has ended":                                  refusal(t, errorcode.KRB_AP_ERR_TKT_EXPIRED, 0),
			"the KDC of EXAMPLE.ORG refuses alice@EXAMPLE.ORG a ticket for krbtgt/EXAMPLE.ORG@EXAMPLE.ORG: (18) KDC_ERR_": refusal(t, errorcode.KDC_ERR_CLIENT_REVOKED, 0),
			"ticket of alice@EXAMPLE.ORG for krbtgt/EXAMPLE.ORG@EXAMPLE.ORG from the KDC of EXAMPLE.ORG: ":                []byte("no answer of Kerberos"),
		} {
			err := login(t.Context(), t, map[string][]byte{"kdc:88": answer}, "kdc")
			require.ErrorContains(t, err, want)
			var network net.Error
			assert.False(t, errors.As(err, &network), "%v", err)
		}
	})
}

// loggedIn is a source whose ticket for tickets was got before.
type loggedIn struct{ *session }

func (l loggedIn) client(realms) (principal, error) { return l.session.client, nil }

func (l loggedIn) login(context.Context, realms, *session) (*session, error) { return l.session, nil }

// One bad name among several is no refusal: the client goes on to the next server.
func TestServerWhoseNameIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := keysOf(t, principal{krbtgt(alice.realm), alice.realm}, "secret", 18)
		now := time.Now()
		tgt, key, err := messages.NewTicket(alice.PrincipalName, alice.realm, krbtgt(alice.realm), alice.realm, types.NewKrbFlags(), keys, 18, 1, now, now, now.Add(time.Hour), now)
		require.NoError(t, err)
		s := newSession(alice, &ticket{Ticket: tgt, key: key, from: now, till: now.Add(time.Hour)})
		answers := map[string][]byte{"kdc:88": refusal(t, errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN, 0)}
		conf := ConfigFile(file(t, "krb5.conf", "[realms]\n  EXAMPLE.ORG = {\n    kdc = kdc:88\n  }\n"))
		for addr, refused := range map[string]bool{"bad:2181": false, "zk:2181": true, "10.0.0.3:2181": true} {
			for _, opts := range [][]Option{nil, {HostsAsWritten()}} {
				m := newMechanism(loggedIn{s}, append(opts, conf, names(nil, map[string]string{"zk": "10.0.0.1"}), func(o *options) { o.dial = fakeKDCs(t, answers) }))
				_, err := m.Begin(t.Context(), sasl.Server{Host: "name", Addr: addr})
				require.ErrorContains(t, err, "the KDC of EXAMPLE.ORG does not know the server zookeeper/name@EXAMPLE.ORG")
				var network net.Error
				assert.Equal(t, refused, !errors.As(err, &network), "%v", err)
			}
		}
	})
}

// A KDC that hangs up, or answers nothing in its share of the time, is not the only one. What
// none of them answers is the network's.
func TestSeveralKDCs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := map[string][]byte{
			"silent:88": nil, "gone:88": nil, "huge:88": make([]byte, largestKDC+1),
			"good:88": refusal(t, errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN, 0),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorContains(t, login(ctx, t, answers, "nobody", "gone", "huge", "silent", "good"), "does not know the client")
		assert.Equal(t, 5*time.Second, time.Since(began))

		var network net.Error
		for _, name := range []string{"nobody", "gone", "huge"} {
			require.ErrorAs(t, login(ctx, t, answers, name), &network, name)
		}
		began = time.Now()
		require.ErrorAs(t, login(t.Context(), t, answers, "silent"), &network, "without a deadline")
		assert.Equal(t, patience, time.Since(began))
		canceled, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		began = time.Now()
		require.ErrorAs(t, login(canceled, t, answers, "silent"), &network)
		assert.Equal(t, time.Second, time.Since(began))
	})
}
