package main

import (
	"context"
	"strconv"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/cache"
)

// settings are numbers below a node. What is no number does not replace the last good one.
type settings struct{ *cache.Cache[int] }

func follow(client *framework.Client, path string) (settings, error) {
	c, err := cache.Start(client, path, func(node string, data []byte) (int, error) {
		if node == path {
			return 0, nil
		}
		return strconv.Atoi(string(data))
	}, cache.Depth(1))
	return settings{c}, err
}

func (s settings) get(path string, preset int) int {
	if e, ok := s.Get(path); ok {
		return e.Value
	}
	return preset
}

// reload calls apply now, and after each change, until ctx ends.
func (s settings) reload(ctx context.Context, apply func(*cache.Snapshot[int])) error {
	for _, err := range s.Latest(ctx) {
		if err != nil {
			return err
		}
		apply(s.Snapshot())
	}
	return nil
}
