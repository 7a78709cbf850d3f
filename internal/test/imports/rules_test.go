package imports

const (
	module  = "github.com/paddock-zk/paddock"
	zk      = "github.com/go-zookeeper/zk"
	backoff = "github.com/cenkalti/backoff/v4"
	zap     = "go.uber.org/zap"
)

// rule is for the packages in one tree of folders, except those with a rule of
// their own further down.
type rule struct {
	tree string // below the module's root; "" is the root itself

	// ours are further trees of ours to import from; a tree's packages may
	// always import each other.
	ours []string

	// modules are those of others to import from, besides the standard library.
	modules []string

	// never lists trees that must not be reached, not even through others: of
	// ours with a leading "./", else import paths.
	never []string
}

// shipped is what no program of a user is to contain because of us.
var shipped = []string{"testing", "./internal/test/realzk", "./internal/test/conformance", "./internal/test/interop"}

// rules says who may import whom. A package without a rule is a violation, so
// that a new folder is placed in the house on purpose.
var rules = []rule{
	{
		tree:    "retry",
		ours:    []string{"internal/foreign"},
		modules: []string{backoff, zap},
		never:   append([]string{zk, "./framework", "./recipes", "./testing", "./listeners"}, shipped...),
	},
	{
		tree:  "listeners",
		ours:  []string{"internal/foreign"},
		never: append([]string{zk, "./framework", "./recipes", "./testing", "./retry"}, shipped...),
	},
	{
		tree:    "framework",
		ours:    []string{"retry", "listeners", "internal"},
		modules: []string{zk, zap},
		never:   append([]string{"./recipes", "./testing"}, shipped...),
	},
	{
		tree:    "recipes",
		ours:    []string{"framework", "retry", "listeners", "internal"},
		modules: []string{zk, zap},
		never:   append([]string{"./testing"}, shipped...),
	},
	{
		tree:  "testing",
		ours:  []string{"internal"},
		never: append([]string{zk, "./framework", "./recipes", "./listeners", "./retry"}, shipped...),
	},
	{
		tree:    "testing/cmd",
		ours:    []string{"testing"},
		modules: []string{zap},
		never:   append([]string{zk, "./framework", "./recipes", "./listeners", "./retry"}, shipped...),
	},
	// What two packages share knows neither of them.
	{
		tree:    "internal",
		ours:    []string{"retry", "listeners"},
		modules: []string{zk, zap},
		never:   []string{"./framework", "./recipes", "./testing"},
	},
	{tree: "internal/wire", never: append([]string{zk}, shipped...)},
	{tree: "internal/foreign", never: append([]string{zk, zap}, shipped...)}, // retry and listeners import it
	{
		tree:    "internal/test/bench",
		ours:    []string{"framework", "recipes", "retry", "listeners", "testing", "internal"},
		modules: []string{zk, zap},
	},
	{
		tree:    "internal/test/robustness",
		ours:    []string{"framework", "recipes", "retry", "listeners", "internal"},
		modules: []string{zk, zap},
	},
	{
		tree:    "internal/test/interop",
		ours:    []string{"framework", "recipes", "retry", "listeners", "testing", "internal"},
		modules: []string{zk, zap},
	},
	{tree: "internal/test/realzk", never: []string{zk, "testing"}},
	// Suites are tests, whatever the name of the file they stand in.
	{
		tree:    "internal/test/conformance",
		ours:    []string{"framework", "recipes", "retry", "listeners", "testing", "internal"},
		modules: []string{zk, zap},
	},
	{
		tree:    "examples",
		ours:    []string{"framework", "recipes", "retry", "listeners", "testing"},
		modules: []string{zk, backoff, zap},
		never:   shipped,
	},
}

// testOnly are modules that only test files may import, whichever package they
// belong to.
var testOnly = []string{"github.com/stretchr/testify", "go.uber.org/goleak", "github.com/anishathalye/porcupine"}
