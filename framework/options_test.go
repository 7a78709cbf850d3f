package framework

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCreateOptions_ThatDoNotGoTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		mode Mode
		opts []CreateOption
		want string // "" for no error
	}{
		"none":                          {Persistent, nil, ""},
		"nil":                           {Persistent, []CreateOption{Parents(), nil}, "option is nil"},
		"a mode below all":              {Persistent - 1, nil, "mode -1"},
		"a mode above all":              {Container + 1, nil, "mode 5"},
		"a TTL":                         {Persistent, []CreateOption{TTL(time.Second)}, ""},
		"a TTL of a sequence":           {PersistentSequential, []CreateOption{TTL(time.Second)}, ""},
		"a TTL of an ephemeral node":    {Ephemeral, []CreateOption{TTL(time.Second)}, "only persistent nodes have a TTL"},
		"a TTL of a container":          {Container, []CreateOption{TTL(time.Second)}, "only persistent nodes have a TTL"},
		"no TTL":                        {Persistent, []CreateOption{TTL(0)}, "TTL 0s is shorter than a millisecond"},
		"the longest TTL":               {Persistent, []CreateOption{TTL(mostTTL)}, ""},
		"too long a TTL":                {Persistent, []CreateOption{TTL(mostTTL + 1)}, "is longer than 305419h53m47.775s"},
		"a negative TTL":                {Persistent, []CreateOption{TTL(-time.Second)}, "TTL -1s is shorter than a millisecond"},
		"or set":                        {Persistent, []CreateOption{OrSet()}, ""},
		"or set a sequence":             {EphemeralSequential, []CreateOption{OrSet()}, "OrSet on a sequential node, which never exists"},
		"or set a protected node":       {Ephemeral, []CreateOption{OrSet(), Protected()}, "OrSet on a protected node, which never exists"},
		"an idempotent sequence":        {PersistentSequential, []CreateOption{Idempotent()}, "a sequential node is idempotent only if Protected"},
		"one that is protected as well": {PersistentSequential, []CreateOption{Idempotent(), Protected()}, ""},
	} {
		_, err := createOptionsOf(tc.mode, tc.opts)
		if tc.want == "" {
			assert.NoError(t, err, name)
			continue
		}
		assert.ErrorIs(t, err, ErrInvalidArgument, name)
		assert.ErrorContains(t, err, tc.want, name)
	}
}

// Each option changes what it is called after, for every call that takes it.
func TestOptions(t *testing.T) {
	acl := ACL{Perms: 1, Scheme: "world", ID: "anyone"}
	created, err := createOptionsOf(Persistent, []CreateOption{Parents(), ACLs(acl), TTL(time.Second), Idempotent(), Compressed()})
	assert.NoError(t, err)
	assert.Equal(t, createOptions{parents: true, acl: []ACL{acl}, hasACL: true, ttl: time.Second, hasTTL: true, idempotent: true, compressed: true}, created)
	created, err = createOptionsOf(Ephemeral, []CreateOption{ACLs()})
	assert.NoError(t, err)
	assert.True(t, created.hasACL, "a list that is empty is none of Config.ACL's")
	got, err := getOptionsOf([]GetOption{Compressed()})
	assert.NoError(t, err)
	assert.Equal(t, getOptions{compressed: true}, got)
	_, err = getOptionsOf([]GetOption{nil})
	assert.ErrorIs(t, err, ErrInvalidArgument)
	var deleted deleteOptions
	for _, opt := range []DeleteOption{Guaranteed(), Recursive(), IfExists(), Idempotent()} {
		opt.delete(&deleted)
	}
	assert.Equal(t, deleteOptions{guaranteed: true, recursive: true, ifExists: true, idempotent: true}, deleted)
	var set setOptions
	for _, opt := range []SetOption{Idempotent(), Compressed()} {
		opt.set(&set)
	}
	assert.Equal(t, setOptions{idempotent: true, compressed: true}, set)
	var committed commitOptions
	for _, opt := range []CommitOption{Idempotent(), Receipt("/r")} {
		opt.commit(&committed)
	}
	assert.Equal(t, commitOptions{idempotent: true, receipts: "/r", hasReceipts: true}, committed)
}
