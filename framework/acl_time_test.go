package framework_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A wrong access list is refused before it is sent, with the entry that is wrong.
func TestWrongACLIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		wrong := framework.DigestACL(framework.PermAll, "bob")
		c := kit.Connect(t, srv)
		byDefault := kit.Connect(t, srv, func(cfg *framework.Config) {
			cfg.ACL = func(string) []framework.ACL { return []framework.ACL{wrong} }
		})
		_, err := c.Create(t.Context(), "/a", nil, framework.Persistent)
		require.NoError(t, err)
		before := srv.Requests()
		for want, call := range map[string]func() error{
			"create /b: ": func() error {
				_, err := c.Create(t.Context(), "/b", nil, framework.Persistent, framework.ACLs(wrong))
				return err
			},
			"create /c: ": func() error {
				_, err := byDefault.Create(t.Context(), "/c", nil, framework.Persistent)
				return err
			},
			"set ACL /a: ": func() error {
				_, err := c.SetACL(t.Context(), "/a", []framework.ACL{wrong}, 0)
				return err
			},
			"commit /: operation 0 of the transaction: create /d: ": func() error {
				tx := c.Transaction()
				tx.Create("/d", nil, framework.Persistent, wrong)
				_, err := tx.Commit(t.Context())
				return err
			},
		} {
			err := call()
			require.ErrorIs(t, err, framework.ErrInvalidACL)
			require.EqualError(t, err, want+`zk: invalid ACL specified: entry 0, scheme "digest": it has no colon: write the result of Digest, user:hash`)
		}
		assert.Equal(t, before, srv.Requests())
	})
}
