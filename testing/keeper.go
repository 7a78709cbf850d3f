package zktest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// keeper is what a version of ClickHouse Keeper does differently from ZooKeeper.
//
// Source: ClickHouse ZooKeeperConstants.h, KeeperTCPHandler, FourLetterCommand,
// ZooKeeperMultiResponse.writeImpl.
type keeper struct {
	version string
	// unknown are operations besides those that no Keeper knows.
	unknown []wire.Op
}

// keepers are the versions that Keeper takes, the oldest first.
var keepers = []*keeper{
	{version: "25.12", unknown: []wire.Op{wire.OpCreateContainer, wire.OpCreateTTL}},
	{version: "26.7"},
}

// KeeperVersions lists the versions that Keeper takes, the oldest first.
func KeeperVersions() []string {
	var versions []string
	for _, k := range keepers {
		versions = append(versions, k.version)
	}
	return versions
}

// Keeper makes the server answer as ClickHouse Keeper of a version does, one of
// KeeperVersions. It is a stand-in: made after Keeper's source, and compared with no Keeper.
// docs/testing.md lists what is different from ZooKeeper 3.8; all else is as there. It
// excludes Version and SASLUsers.
//
// A Keeper takes up no session again. A client whose connection is lost gets a new session,
// and the former one ends after its timeout.
//
// Defaults: SessionTimeouts are 10 and 100 seconds, ExpireEvery half a second, and
// FourLetterWords those that a Keeper answers without further settings.
func Keeper(version string) Option {
	return optionFunc(func(c *config) {
		c.keeper, c.badKeeper = nil, version
		if i := slices.Index(KeeperVersions(), version); i >= 0 {
			c.keeper, c.badKeeper = keepers[i], ""
		}
	})
}

// keeperWords are the four-letter words that a Keeper answers by default, of those that
// ZooKeeper has too.
var keeperWords = []string{"conf", "cons", "crst", "envi", "isro", "mntr", "ruok", "srst", "srvr", "stat", "wchs"}

// setDefaults sets what no other option has set.
func (k *keeper) setDefaults(c *config) {
	c.expiry = cmp.Or(c.expiry, 500*time.Millisecond)
	if c.minTimeout == 0 && c.maxTimeout == 0 {
		c.minTimeout, c.maxTimeout = 10*time.Second, 100*time.Second
	}
	if c.words == nil {
		c.words = keeperWords
	}
}

// check refuses options that exclude each other.
func (k *keeper) check(c *config) error {
	switch {
	case c.release != 0:
		return errors.New("zktest: Keeper and Version exclude each other")
	case c.saslUsers != nil:
		return errors.New("zktest: Keeper knows no SASL: leave SASLUsers out")
	}
	return nil
}

// knows reports whether a Keeper can read a request, which may be nil. It ends the
// connection at one that it cannot.
func (k *keeper) knows(op wire.Op, req wire.Record) bool {
	switch op {
	case wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpWhoAmI, wire.OpSASL, wire.OpDeleteContainer:
		return false
	}
	if multi, ok := req.(*wire.MultiRequest); ok {
		for _, op := range multi.Ops {
			if !k.knows(op.Op, op.Request) {
				return false
			}
		}
	}
	return !slices.Contains(k.unknown, op)
}

// rejectLocked tells a client that the member has no leader. Such an answer is no session.
func (c *conn) rejectLocked() {
	c.sendLocked(&wire.ConnectResponse{ProtocolVersion: 42, SessionID: -1, Password: make([]byte, 16)})
}
