//go:build !unix

package main

import (
	"context"
	"errors"
	"time"
)

func startReal(context.Context) (server, func() error, error) {
	return server{}, nil, errors.New("real servers are run on Unix only")
}

func processorTime() time.Duration { return 0 }
