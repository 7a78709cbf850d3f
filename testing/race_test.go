//go:build race

package zktest_test

func init() { slowed = true }
