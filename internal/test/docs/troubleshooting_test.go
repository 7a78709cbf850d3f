package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/cache"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// texts are the exported errors that are values, by the names that users give them.
var texts = map[string]error{
	"framework.ErrNoNode": framework.ErrNoNode, "framework.ErrNodeExists": framework.ErrNodeExists, "framework.ErrBadVersion": framework.ErrBadVersion,
	"framework.ErrNotEmpty": framework.ErrNotEmpty, "framework.ErrNoAuth": framework.ErrNoAuth, "framework.ErrAuthFailed": framework.ErrAuthFailed,
	"framework.ErrInvalidACL": framework.ErrInvalidACL, "framework.ErrNoChildrenForEphemerals": framework.ErrNoChildrenForEphemerals,
	"framework.ErrInvalidPath": framework.ErrInvalidPath, "framework.ErrSessionExpired": framework.ErrSessionExpired, "framework.ErrClosed": framework.ErrClosed,
	"framework.ErrNotConnected": framework.ErrNotConnected, "framework.ErrOutcomeUnknown": framework.ErrOutcomeUnknown, "framework.ErrTooLarge": framework.ErrTooLarge,
	"framework.ErrReplyTooLarge": framework.ErrReplyTooLarge, "framework.ErrTimeoutTooShort": framework.ErrTimeoutTooShort,
	"framework.ErrEndsConnection": framework.ErrEndsConnection, "framework.ErrBehind": framework.ErrBehind,
	"framework.ErrUnsupported": framework.ErrUnsupported, "framework.ErrInvalidArgument": framework.ErrInvalidArgument, "framework.ErrNilContext": framework.ErrNilContext,
	"locks.ErrLockLost": locks.ErrLockLost, "locks.ErrNodeDeleted": locks.ErrNodeDeleted, "locks.ErrNotAcquired": locks.ErrNotAcquired, "locks.ErrDeadlock": locks.ErrDeadlock,
	"locks.ErrReleased": locks.ErrReleased, "locks.ErrReleasePending": locks.ErrReleasePending, "locks.ErrInvalidLock": locks.ErrInvalidLock,
	"locks.ErrSequenceExhausted": locks.ErrSequenceExhausted, "locks.ErrNotRevocable": locks.ErrNotRevocable,
	"locks.ErrFenced": locks.ErrFenced, "locks.ErrNoFence": locks.ErrNoFence,
	"cache.ErrLimit":  cache.ErrLimit,
	"leader.ErrLeave": leader.ErrLeave, "leader.ErrSteppedDown": leader.ErrSteppedDown, "leader.ErrUnhealthy": leader.ErrUnhealthy, "leader.ErrExited": leader.ErrExited,
	"retry.ErrExhausted": retry.ErrExhausted, "retry.ErrStopped": retry.ErrStopped, "retry.ErrUnsure": retry.ErrUnsure, "retry.ErrNoBudget": retry.ErrNoBudget,
	"retry.ErrOvertaken":  retry.ErrOvertaken,
	"zktest.ErrNoSession": zktest.ErrNoSession, "zktest.ErrClosed": zktest.ErrClosed,
}

// Each error stands on the page with its text, and no exported error is missing.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	require.NoError(t, err)
	for name, value := range texts {
		assert.Contains(t, string(page), "| `"+value.Error()+"` | `"+name+"` |")
	}
	for _, name := range exportedErrors(t) {
		assert.Contains(t, texts, name)
	}
}

// exportedErrors are the variables of the public packages that are called as errors are.
func exportedErrors(t *testing.T) (names []string) {
	t.Helper()
	for _, dir := range public {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				for i := 0; ok && i < len(spec.Names); i++ {
					if id := spec.Names[i].Name; strings.HasPrefix(id, "Err") {
						names = append(names, file.Name.Name+"."+id)
					}
				}
				return true
			})
		}
	}
	require.Greater(t, len(names), 30)
	return names
}
