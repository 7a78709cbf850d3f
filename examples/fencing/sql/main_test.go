package main

import (
	"context"
	"database/sql"
	"log"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, playground.Run(t.Context(), "sql", "", log.New(&out, "", 0), run))
	assert.Equal(t, `Ann has the lock and reads 100
Bob has it now, and adds 50
Ann's late write is refused: true
the balance is 150
without the fence it is 70 and Bob's 50 are lost
`, out.String())
}

// open makes accounts of which the database itself notes who has written, in
// its own order.
func open(t *testing.T) Accounts {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for _, stmt := range []string{
		schema,
		`CREATE TABLE written (n INTEGER PRIMARY KEY AUTOINCREMENT, balance INTEGER)`,
		`CREATE TRIGGER note AFTER UPDATE OF balance ON accounts BEGIN INSERT INTO written (balance) VALUES (new.balance); END`,
		`INSERT INTO accounts (id, balance) VALUES ('a', 0)`,
	} {
		_, err := db.ExecContext(t.Context(), stmt)
		require.NoError(t, err)
	}
	return Accounts{db}
}

// written lists the balances that were written, which are their writers' tokens.
func (a Accounts) written(t *testing.T) (all []int64) {
	t.Helper()
	rows, err := a.DB.QueryContext(t.Context(), `SELECT balance FROM written ORDER BY n`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var token int64
		require.NoError(t, rows.Scan(&token))
		all = append(all, token)
	}
	require.NoError(t, rows.Err())
	return all
}

// crowd has holders of all times write at once, in any order, each its token.
func crowd(t *testing.T, write func(ctx context.Context, token int64) error) (refused int) {
	t.Helper()
	const holders = 200
	var mu sync.Mutex
	var wg sync.WaitGroup
	tokens := rand.Perm(holders)
	next := make(chan int64, holders)
	for _, n := range tokens {
		next <- int64(n + 1)
	}
	close(next)
	for range 8 {
		wg.Go(func() {
			for token := range next {
				err := write(t.Context(), token)
				if err != nil {
					assert.ErrorIs(t, err, locks.ErrFenced)
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return refused
}

// What the database accepts rises, whoever is late.
func TestStaleRefused(t *testing.T) {
	a := open(t)
	refused := crowd(t, func(ctx context.Context, token int64) error { return a.Write(ctx, "a", token, token) })
	all := a.written(t)
	assert.True(t, slices.IsSorted(all), "%v", all)
	assert.Positive(t, refused)
	assert.Equal(t, 200, refused+len(all))
	assert.Equal(t, int64(200), all[len(all)-1])
}

func TestStaleAcceptedWithoutFence(t *testing.T) {
	a := open(t)
	refused := crowd(t, func(ctx context.Context, token int64) error { return a.WriteUnfenced(ctx, "a", token) })
	assert.Zero(t, refused)
	assert.False(t, slices.IsSorted(a.written(t)))
}

// Reading shuts the door behind who held the lock before.
func TestReadRaises(t *testing.T) {
	a := open(t)
	_, err := a.Read(t.Context(), "a", 7)
	require.NoError(t, err)
	require.ErrorIs(t, a.Write(t.Context(), "a", 1, 6), locks.ErrFenced)
	_, err = a.Read(t.Context(), "a", 6)
	require.ErrorIs(t, err, locks.ErrFenced)
	require.NoError(t, a.Write(t.Context(), "a", 1, 7))
	for _, over := range []int64{0, -1} {
		require.ErrorIs(t, a.Write(t.Context(), "a", 1, over), locks.ErrFenced, "the token of a hold that is over")
		_, err = a.Read(t.Context(), "a", over)
		require.ErrorIs(t, err, locks.ErrFenced)
	}
	require.ErrorIs(t, a.Write(t.Context(), "nobody's", 1, 8), sql.ErrNoRows)
}
