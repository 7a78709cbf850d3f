// Package imports holds the test that keeps imports running downwards: which
// of our packages, and which other modules, each package may import outside
// its tests. The table in rules_test.go is the rule; .golangci.yml repeats the
// parts of it that an editor should show at once.
package imports
