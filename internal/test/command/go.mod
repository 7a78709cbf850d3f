module github.com/paddock-zk/paddock/internal/test/command

go 1.25.0

require (
	github.com/paddock-zk/paddock v0.0.0
	github.com/rogpeppe/go-internal v1.16.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	golang.org/x/sys v0.26.0 // indirect
	golang.org/x/tools v0.26.0 // indirect
)

replace github.com/paddock-zk/paddock => ../../..
