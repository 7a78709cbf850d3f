package listeners_test

import (
	"context"
	"fmt"

	"github.com/paddock-zk/paddock/listeners"
)

func ExampleHub() {
	var states listeners.Hub[listeners.State]
	states.Listen(func(s listeners.State) { fmt.Println(s, s.IsConnected()) })

	states.Publish(listeners.Connected)
	states.Publish(listeners.Suspended)

	states.Close()
	_ = states.Wait(context.Background()) // everything has been delivered
	// Output:
	// CONNECTED true
	// SUSPENDED false
}

func ExampleHub_Subscribe() {
	states := listeners.Hub[listeners.State]{ReplayLast: true}
	states.Publish(listeners.Connected)

	sub := states.Subscribe() // begins with the state now
	defer sub.Stop()
	for _, s := range []listeners.State{listeners.Suspended, listeners.Lost} {
		states.Publish(s)
	}

	ctx := context.Background()
	for {
		select {
		case s := <-sub.C:
			fmt.Println(s)
			if s == listeners.Lost {
				return
			}
		case <-ctx.Done():
			return
		}
	}
	// Output:
	// CONNECTED
	// SUSPENDED
	// LOST
}
