package listeners_test

import (
	"fmt"

	"github.com/paddock-zk/paddock/listeners"
)

func ExampleState() {
	for _, s := range []listeners.State{listeners.Connected, listeners.Suspended, listeners.Reconnected, listeners.Lost} {
		fmt.Println(s, s.IsConnected())
	}
	// Output:
	// CONNECTED true
	// SUSPENDED false
	// RECONNECTED true
	// LOST false
}

// A function that only reads events takes a Source. A Hub is one.
func ExampleSource() {
	first := func(states listeners.Source[listeners.State]) listeners.State {
		sub := states.Subscribe()
		defer sub.Stop()
		return <-sub.C
	}
	hub := &listeners.Hub[listeners.State]{ReplayLast: true}
	defer hub.Close()
	hub.Publish(listeners.Connected)
	fmt.Println(first(hub))
	// Output: CONNECTED
}
