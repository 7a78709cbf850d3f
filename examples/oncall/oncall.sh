#!/usr/bin/env bash
# Three services and a stuck one share a lock. Who holds it, and how is it freed?
#
#   PADDOCK_SERVERS=zk1:2181,zk2:2181 examples/oncall/oncall.sh
#
# It prints the commands that the person on call gives, and what they answer.
set -euo pipefail
cd "$(dirname "$0")"
: "${PADDOCK_SERVERS:?the ZooKeeper servers, as host:port,...}"
readonly lock=/locks/orders

dir=$(mktemp -d)
pids=()
finish() {
	((${#pids[@]})) && kill "${pids[@]}" 2>/dev/null
	wait
	rm -rf "$dir"
}
trap finish EXIT
go build -o "$dir/oncall" .
go -C ../.. build -o "$dir/paddock" ./cmd/paddock
PATH=$dir:$PATH
cd "$dir"

# serve starts a service and waits until it stands in the queue.
serve() {
	local name=$1
	shift
	oncall -servers "$PADDOCK_SERVERS" -name "$name" "$@" 2>"$name.log" &
	pids+=($!)
	until paddock who --json $lock 2>/dev/null | grep -q "\"$name pid"; do
		kill -0 $! # else it has ended
		sleep 0.1
	done
}

# try prints a command as it was given, and what it prints.
try() {
	printf '$ %s\n' "$1"
	bash -c "$1" 2>&1
	echo
}

serve report-7 -stuck
for i in 1 2 3; do serve "orders-$i"; done
page=$(grep -o 'http://[^ ]*' report-7.log)
export page

try 'paddock who /locks/orders'
try 'curl -s "$page/debug/locks?format=json"'
try 'paddock break --yes /locks/orders'
until paddock who --json $lock | grep -q '"report-7 pid'; do sleep 0.1; done # it queues again
try 'paddock who /locks/orders'
try "grep 'path=/locks/orders' report-7.log"
try 'curl -s "$page/debug/locks?format=json"'
try 'curl -s "$page/metrics" | grep paddock_hold_seconds_count'
