package zktest_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// samples has one well-formed body for each request that there is.
func samples() map[wire.Op]wire.Record {
	create, read := createReq("/new"), watch("/a")
	version, path := &wire.PathVersionRequest{Path: "/a", Version: 7}, &wire.PathRequest{Path: "/a"}
	paths := wire.SetWatchesRequest{RelativeZxid: 1, Data: []string{"/a"}, Exist: []string{"/a", "/none"}, Child: []string{"/"}}
	return map[wire.Op]wire.Record{
		wire.OpNotification: wire.Empty{}, wire.OpError: wire.Empty{}, wire.OpCreateSession: wire.Empty{}, wire.OpPing: wire.Empty{},
		wire.OpCreate: create, wire.OpCreate2: create, wire.OpCreateContainer: create,
		wire.OpCreateTTL: &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/ttl", ACL: open, Flags: wire.FlagPersistentTTL}, TTL: 1000},
		wire.OpDelete:    version, wire.OpCheck: version, wire.OpDeleteContainer: path, wire.OpSync: path, wire.OpGetACL: path,
		wire.OpGetEphemerals: path, wire.OpGetAllChildrenNumber: path,
		wire.OpExists: read, wire.OpGetData: read, wire.OpGetChildren: read, wire.OpGetChildren2: read,
		wire.OpSetData: &wire.SetDataRequest{Path: "/a", Data: []byte("x"), Version: -1},
		wire.OpSetACL:  &wire.SetACLRequest{Path: "/a", ACL: open, Version: -1},
		wire.OpMulti: &wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpCreate, Request: createReq("/multi")}, {Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/multi", Version: -1}},
		}},
		wire.OpMultiRead: &wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpGetChildren, Request: watch("/")}, {Op: wire.OpGetData, Request: watch("/a")}, {Op: wire.OpGetData, Request: watch("/none")},
		}},
		wire.OpReconfig:     &wire.ReconfigRequest{Joining: "x", ConfigID: -1},
		wire.OpCheckWatches: &wire.WatchesRequest{Path: "/a", Type: wire.WatchAny}, wire.OpRemoveWatches: &wire.WatchesRequest{Path: "/a", Type: wire.WatchAny},
		wire.OpAuth: &wire.AuthRequest{Scheme: "digest", Auth: []byte("user:secret")}, wire.OpSASL: &wire.SASLRequest{Token: []byte("secret")},
		wire.OpSetWatches: &paths, wire.OpSetWatches2: &wire.SetWatches2Request{SetWatchesRequest: paths, Persistent: []string{"/a"}, PersistentRecursive: []string{"/"}},
		wire.OpAddWatch: &wire.AddWatchRequest{Path: "/a", Mode: wire.AddWatchPersistent}, wire.OpWhoAmI: wire.Empty{}, wire.OpCloseSession: wire.Empty{},
	}
}

// The transcript has words for whatever a client sends, however broken it is.
func TestTranscriptOfEachRequest(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory(), zktest.Transcript())
	begin(t, srv, 10*time.Second).create("/a", 0)
	all := samples()
	for op := wire.Op(-20); op <= 120; op++ {
		if known := !strings.HasPrefix(op.String(), "op "); known {
			require.Contains(t, all, op)
		}
		var e wire.Encoder
		if req := all[op]; req != nil {
			req.Encode(&e)
		}
		bodies := [][]byte{e.B, append(e.B[:len(e.B):len(e.B)], 1, 2, 3), {0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff}}
		for n := range e.B {
			bodies = append(bodies, e.B[:n])
		}
		for _, body := range bodies {
			c := begin(t, srv, 10*time.Second)
			b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
			b = binary.BigEndian.AppendUint32(b, 5)
			b = binary.BigEndian.AppendUint32(b, uint32(op))
			_, _ = c.nc.Write(wire.AppendFrame(append(b, body...), &wire.RequestHeader{Xid: 6, Op: wire.OpCloseSession}))
			for {
				if _, err := c.read(); err != nil {
					break
				}
			}
		}
	}
	var b strings.Builder
	require.NoError(t, srv.WriteTranscript(&b))
	assert.Contains(t, b.String(), "> op 120 #5", "an operation that there is not, by its number")
}

func TestTranscriptOfMultiRead(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory(), zktest.Transcript())
	c := begin(t, srv, 10*time.Second)
	c.create("/a", 0)
	c.must(wire.OpMultiRead, samples()[wire.OpMultiRead], nil)
	c.must(wire.OpWhoAmI, wire.Empty{}, nil)
	c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("line\nfeed"), Version: -1}, nil)
	long := &wire.MultiRequest{Ops: make([]wire.MultiOp, 1000)}
	for i := range long.Ops {
		long.Ops[i] = wire.MultiOp{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/a\n", Version: -1}}
	}
	_, _ = c.call(wire.OpMulti, long, nil)
	var b strings.Builder
	require.NoError(t, srv.WriteTranscript(&b))
	assert.Contains(t, b.String(), `> multiRead #2 [getChildren Path="/" Watch=true] [getData Path="/a" Watch=true]`)
	assert.Contains(t, b.String(), `[Op=getChildren Children=["a" "zookeeper"]]`)
	assert.Contains(t, b.String(), `[Op=error Code=no node]`)
	assert.Contains(t, b.String(), `Clients=[{ip `)
	for line := range strings.Lines(b.String()) {
		assert.Regexp(t, `^ +\d+\.\d{6} `, line, "one line for each")
		assert.Less(t, len(line), 4200)
	}
	assert.Contains(t, b.String(), " bytes more)")
}
