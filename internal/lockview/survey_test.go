package lockview

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Those who have the lock are the first ones of its queue, whatever the order of the names.
func TestHolders(t *testing.T) {
	for name, tc := range map[string]struct {
		names []string
		first string
		holds int
	}{
		"nobody":                    {[]string{"x", "lock-1"}, "", 0},
		"a mutex":                   {[]string{"a-lock-0000000003", "b-lock-0000000002"}, "b-lock-0000000002", 1},
		"readers":                   {[]string{"a__WRIT__0000000003", "b__READ__0000000002", "c__READ__0000000001", "d__READ__0000000004"}, "c__READ__0000000001", 2},
		"a writer":                  {[]string{"a__READ__0000000003", "b__WRIT__0000000002"}, "b__WRIT__0000000002", 1},
		"a writer that reads":       {[]string{"a__READ__0000000002", "b__WRIT__0000000002", "c__READ__0000000003"}, "b__WRIT__0000000002", 2},
		"writers behind the reader": {[]string{"a__READ__0000000002", "b__WRIT__0000000003", "c__READ__0000000003"}, "a__READ__0000000002", 1},
	} {
		queue := queueOf(tc.names)
		assert.Equal(t, tc.holds, holders(queue), name)
		if tc.first != "" {
			assert.Equal(t, tc.first, queue[0], name)
		}
	}
}
