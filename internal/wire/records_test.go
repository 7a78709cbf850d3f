package wire

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var aStat = Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}

// records has each record once, filled, so that every field is seen to travel.
func records() []Record {
	acl := []ACL{{PermAll, "world", "anyone"}, {PermRead, "digest", "u:x"}}
	create := CreateRequest{"/a", []byte("d"), acl, FlagEphemeralSequence}
	return []Record{
		&aStat,
		&ConnectRequest{0, 9, 4000, 77, []byte("0123456789abcdef"), true, true},
		&ConnectRequest{0, 9, 4000, 77, []byte("0123456789abcdef"), false, false},
		&ConnectResponse{0, 4000, 77, []byte("0123456789abcdef"), true, true},
		&RequestHeader{3, OpGetData},
		&ReplyHeader{3, 1 << 40, CodeNoNode},
		&WatcherEvent{EventNodeDeleted, StateSyncConnected, "/a"},
		&create,
		&CreateTTLRequest{create, 12345},
		&CreateResponse{"/a"},
		&Create2Response{"/a", aStat},
		&PathVersionRequest{"/a", -1},
		&PathWatchRequest{"/a", true},
		&PathRequest{"/a"},
		&SetDataRequest{"/a", nil, 3},
		&SetDataRequest{"/a", []byte{}, 3},
		&StatResponse{aStat},
		&GetDataResponse{[]byte("x"), aStat},
		&SetACLRequest{"/a", acl, 2},
		&GetACLResponse{acl, aStat},
		&GetChildrenResponse{[]string{"a", "b"}},
		ptr(NamesOf([]string{"a", "b"})),
		&GetChildren2Response{[]string{"a", "b"}, aStat},
		&GetEphemeralsResponse{[]string{"/a"}},
		&GetAllChildrenNumberResponse{4},
		&AuthRequest{0, "digest", []byte("u:p")},
		&SetWatchesRequest{5, []string{"/a"}, []string{"/b"}, []string{"/c"}},
		&SetWatches2Request{SetWatchesRequest{5, []string{"/a"}, []string{"/b"}, []string{"/c"}}, []string{"/d"}, []string{"/e"}},
		&AddWatchRequest{"/a", AddWatchPersistentRecursive},
		&WatchesRequest{"/a", WatchData},
		&ReconfigRequest{"j", "l", "n", -1},
		&ErrorResponse{CodeNoWatcher},
		&WhoAmIResponse{[]ClientInfo{{"ip", "127.0.0.1"}}},
		&MultiRequest{[]MultiOp{
			{OpCreate, &create}, {OpCreate2, &create}, {OpCreateContainer, &create},
			{OpCreateTTL, &CreateTTLRequest{create, 5}}, {OpDelete, &PathVersionRequest{"/a", 1}},
			{OpSetData, &SetDataRequest{"/a", []byte("x"), 1}}, {OpCheck, &PathVersionRequest{"/a", 1}},
			{OpGetData, &PathWatchRequest{"/a", false}}, {OpGetChildren, &PathWatchRequest{"/a", false}},
		}},
		&MultiResponse{[]MultiResult{
			{Op: OpCreate, Path: "/a"}, {Op: OpCreate2, Path: "/a", Stat: aStat}, {Op: OpDelete},
			{Op: OpSetData, Stat: aStat}, {Op: OpCheck}, {Op: OpGetData, Data: []byte("x"), Stat: aStat},
			{Op: OpGetChildren, Children: NamesOf([]string{"a"})}, {Op: OpError, Code: CodeNoNode},
			{Op: OpCreateTTL, Path: "/t", Stat: aStat}, {Op: OpCreateContainer, Path: "/c", Stat: aStat},
		}},
	}
}

func ptr[T any](v T) *T { return &v }

func TestRecordsSurviveTheWire(t *testing.T) {
	for _, want := range records() {
		name := reflect.TypeOf(want).Elem().Name()
		var e Encoder
		want.Encode(&e)
		got := reflect.New(reflect.TypeOf(want).Elem()).Interface().(Record)
		d := NewDecoder(e.B)
		got.Decode(d)
		require.NoError(t, d.Err(), name)
		assert.Zero(t, d.Len(), "%s: bytes left over", name)
		assert.Equal(t, want, got, name)
	}
}

func TestTruncatedRecordsAreMalformed(t *testing.T) {
	for _, r := range records() {
		name := reflect.TypeOf(r).Elem().Name()
		var e Encoder
		r.Encode(&e)
		short := 0
		for n := range e.B {
			d := NewDecoder(e.B[:n])
			reflect.New(reflect.TypeOf(r).Elem()).Interface().(Record).Decode(d)
			if d.Err() != nil {
				short++
				require.ErrorIs(t, d.Err(), ErrMalformed)
			}
		}
		// The one optional byte of the connect records may be missing.
		assert.GreaterOrEqual(t, short, len(e.B)-1, name)
	}
}

// FuzzDecode feeds any bytes to every record: none may panic, or ask for more
// memory than the bytes can hold, and what decodes must encode to the same
// values again.
func FuzzDecode(f *testing.F) {
	for i, r := range records() {
		var e Encoder
		r.Encode(&e)
		f.Add(uint8(i), e.B)
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		all := records()
		typ := reflect.TypeOf(all[int(which)%len(all)]).Elem()
		once := reflect.New(typ).Interface().(Record)
		d := NewDecoder(b)
		once.Decode(d)
		if d.Err() != nil {
			return
		}
		var e, again Encoder
		once.Encode(&e)
		twice := reflect.New(typ).Interface().(Record)
		d = NewDecoder(e.B)
		twice.Decode(d)
		if d.Err() != nil {
			t.Fatalf("own encoding: %v", d.Err())
		}
		twice.Encode(&again)
		if !bytes.Equal(e.B, again.B) {
			t.Fatalf("%x became %x", e.B, again.B)
		}
	})
}
