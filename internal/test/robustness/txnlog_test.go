//go:build realzk

package robustness

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Transactions in a server's log that change nodes.
const (
	txnCreate          = 1
	txnDelete          = 2
	txnSetData         = 5
	txnMulti           = 14
	txnCreate2         = 15
	txnCreateContainer = 19
	txnDeleteContainer = 20
	txnCloseSession    = -11
	txnError           = -1
)

// readLogs returns what the servers have committed, with times by the clock of
// stamp: the transactions that a majority of the logs has. All other servers must
// have followed the leader since the last fault.
//
// Source: ZooKeeper's FileTxnLog, zookeeper.jute, DataTree.processTxn.
func readLogs(t *testing.T, e *realzk.Ensemble) []check.Txn {
	t.Helper()
	copies := make(map[int64]int)
	all := make(map[int64]check.Txn)
	offset := time.Duration(stamp() - time.Now().UnixNano())
	for i := range e.Size() {
		files, err := filepath.Glob(filepath.Join(e.Dir(), fmt.Sprint(i+1), "data", "version-2", "log.*"))
		require.NoError(t, err)
		seen := make(map[int64]bool)
		for _, file := range files {
			require.NoError(t, readLog(file, func(txn check.Txn) {
				txn.At += offset
				if !seen[txn.Zxid] {
					seen[txn.Zxid] = true
					copies[txn.Zxid]++
					all[txn.Zxid] = txn
				}
			}))
		}
	}
	for zxid, n := range copies {
		if 2*n < e.Size() {
			delete(all, zxid)
		}
	}
	txns := slices.SortedFunc(maps.Values(all), func(a, b check.Txn) int { return cmp.Compare(a.Zxid, b.Zxid) })
	for i := 1; i < len(txns); i++ {
		before, txn := txns[i-1].Zxid, txns[i].Zxid
		assert.True(t, txn == before+1 || txn>>32 > before>>32, "no transaction between %#x and %#x", before, txn)
	}
	return expandCloses(txns)
}

var errLog = errors.New("not a log")

// readLog calls fn for each transaction in a file, which ends in zeros, maybe behind a part of
// a transaction.
func readLog(file string, fn func(check.Txn)) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const header = 16
	if len(text) < header || string(text[:4]) != "ZKLG" {
		return nil // just begun
	}
	for text = text[header:]; len(text) >= 12; {
		n := int(binary.BigEndian.Uint32(text[8:]))
		if n == 0 || len(text) < 12+n+1 {
			return nil
		}
		switch text[12+n] {
		case 'B':
		case 0:
			return nil // the server was killed while it wrote
		default:
			return fmt.Errorf("%w: %s", errLog, file)
		}
		txn, err := decodeTxn(wire.NewDecoder(text[12 : 12+n]))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		fn(txn)
		text = text[12+n+1:]
	}
	return nil
}

func decodeTxn(d *wire.Decoder) (txn check.Txn, err error) {
	txn.Session = d.Int64()
	d.Int32() // the client's number of the request
	txn.Zxid = d.Int64()
	txn.At = time.Duration(d.Int64()) * time.Millisecond
	kind := d.Int32()
	txn.Closes = kind == txnCloseSession
	changes(d, kind, &txn)
	return txn, d.Err()
}

// changes adds what a transaction does to nodes.
func changes(d *wire.Decoder, kind int32, txn *check.Txn) {
	switch kind {
	case txnCreate, txnCreate2, txnCreateContainer:
		c := check.Change{Kind: check.Created, Path: d.String(), Data: string(d.Bytes())}
		d.ACLs()
		if kind != txnCreateContainer && d.Bool() {
			c.Owner = txn.Session
		}
		d.Int32() // the parent's cversion
		txn.Changes = append(txn.Changes, c)
	case txnDelete, txnDeleteContainer:
		txn.Changes = append(txn.Changes, check.Change{Kind: check.Deleted, Path: d.String()})
	case txnSetData:
		txn.Changes = append(txn.Changes, check.Change{Kind: check.DataSet, Path: d.String(), Data: string(d.Bytes())})
		d.Int32() // the version
	case txnCloseSession:
		if d.Len() == 0 {
			return // see expandCloses
		}
		for _, path := range d.Strings() {
			txn.Changes = append(txn.Changes, check.Change{Kind: check.Deleted, Path: path})
		}
	case txnMulti: // with an error among its parts nothing was done
		before := len(txn.Changes)
		failed := false
		for range d.Int32() {
			kind := d.Int32()
			failed = failed || kind == txnError
			changes(wire.NewDecoder(d.Bytes()), kind, txn)
		}
		if failed {
			txn.Changes = txn.Changes[:before]
		}
	}
}

// expandCloses lets the end of a session delete its ephemeral nodes where the
// log does not say which they were.
func expandCloses(txns []check.Txn) []check.Txn {
	owned := make(map[int64]map[string]bool)
	owner := make(map[string]int64)
	for i := range txns {
		txn := &txns[i]
		if txn.Closes && len(txn.Changes) == 0 {
			for _, path := range slices.Sorted(maps.Keys(owned[txn.Session])) {
				txn.Changes = append(txn.Changes, check.Change{Kind: check.Deleted, Path: path})
			}
		}
		for _, c := range txn.Changes {
			switch {
			case c.Kind == check.Created && c.Owner != 0:
				if owned[c.Owner] == nil {
					owned[c.Owner] = make(map[string]bool)
				}
				owned[c.Owner][c.Path], owner[c.Path] = true, c.Owner
			case c.Kind == check.Deleted:
				delete(owned[owner[c.Path]], c.Path)
			}
		}
	}
	return txns
}

// The log says what was done.
func TestReadLogs(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick})
	c := kit.Connect(t, e, short)
	before := stamp()
	_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
	require.NoError(t, err)
	other := kit.Connect(t, e, short)
	id := other.SessionID()
	_, err = other.Create(t.Context(), "/a/e", []byte("e"), framework.Ephemeral)
	require.NoError(t, err)
	tx := c.Transaction()
	tx.Set("/a", []byte("y"), 0)
	tx.Create("/b", []byte("b"), framework.Container)
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	refused := c.Transaction()
	refused.Create("/c", nil, framework.Persistent)
	refused.Check("/none", 0)
	_, err = refused.Commit(t.Context())
	require.ErrorIs(t, err, framework.ErrNoNode)
	require.NoError(t, other.Close())
	require.NoError(t, c.Delete(t.Context(), "/b", 0))
	require.NoError(t, c.Sync(t.Context(), "/a"))

	var done []check.Change
	for _, txn := range readLogs(t, e) {
		done = append(done, txn.Changes...)
		if len(txn.Changes) > 0 {
			assert.GreaterOrEqual(t, txn.At, time.Duration(before)-2*time.Millisecond)
			assert.LessOrEqual(t, txn.At, time.Duration(stamp()))
		}
	}
	assert.Equal(t, []check.Change{
		{Kind: check.Created, Path: "/a", Data: "x"},
		{Kind: check.Created, Path: "/a/e", Owner: id, Data: "e"},
		{Kind: check.DataSet, Path: "/a", Data: "y"},
		{Kind: check.Created, Path: "/b", Data: "b"},
		{Kind: check.Deleted, Path: "/a/e"},
		{Kind: check.Deleted, Path: "/b"},
	}, done)
}

// A server that is killed while it writes leaves a part of a transaction.
func TestReadLogOfAKilledServer(t *testing.T) {
	record := func(path string) []byte {
		var txn []byte
		txn = binary.BigEndian.AppendUint64(txn, 1)  // session
		txn = binary.BigEndian.AppendUint32(txn, 1)  // the client's number
		txn = binary.BigEndian.AppendUint64(txn, 7)  // zxid
		txn = binary.BigEndian.AppendUint64(txn, 99) // time
		txn = binary.BigEndian.AppendUint32(txn, txnDelete)
		txn = append(binary.BigEndian.AppendUint32(txn, uint32(len(path))), path...)
		txn = append(binary.BigEndian.AppendUint32(make([]byte, 8), uint32(len(txn))), txn...)
		return append(txn, 'B')
	}
	whole, second := append([]byte("ZKLG............"), record("/a")...), record("/b")
	for cut := range len(second) {
		file := filepath.Join(t.TempDir(), "log.1")
		require.NoError(t, os.WriteFile(file, append(append(slices.Clone(whole), second[:cut]...), make([]byte, 100)...), 0o600))
		var paths []string
		require.NoError(t, readLog(file, func(txn check.Txn) { paths = append(paths, txn.Changes[0].Path) }))
		assert.Equal(t, []string{"/a"}, paths, "%d bytes", cut)
	}
}
