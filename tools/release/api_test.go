package main

import (
	"reflect"
	"testing"
)

func TestUnnamed(t *testing.T) {
	const report = `# example.com/ours/framework
## incompatible changes
(*Client).Ping: removed
Config.LookAhead: removed
Config.Old: changed from int to string
package removed
## compatible changes
Config.Tracer: added

# example.com/ours/old
## incompatible changes
package removed

# summary
v0.2.0 is a valid semantic version for this release.`
	changes := section("# Changes\n\n## Unreleased\n\n- Ping.\n\n## 0.2.0\n\n- `Config.LookAhead` went, and package `old`.\n\n## 0.1.0\n\n- Old.\n", "v0.2.0")
	want := []string{
		"example.com/ours/framework: (*Client).Ping: removed",
		"example.com/ours/framework: Config.Old: changed from int to string",
		"example.com/ours/framework: package removed",
	}
	if got := unnamed(report, changes); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, and not %q", got, want)
	}
}
