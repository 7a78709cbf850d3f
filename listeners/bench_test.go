package listeners_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/paddock-zk/paddock/listeners"
)

func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("%d listeners", n), func(b *testing.B) {
			var hub listeners.Hub[int]
			for range n {
				hub.Listen(func(int) {})
			}
			b.ReportAllocs()
			for b.Loop() {
				hub.Publish(1)
			}
			hub.Close()
			_ = hub.Wait(context.Background())
		})
	}
}

func BenchmarkSubscription(b *testing.B) {
	var hub listeners.Hub[int]
	sub := hub.Subscribe()
	b.ReportAllocs()
	for b.Loop() {
		hub.Publish(1)
		<-sub.C
	}
	sub.Stop()
}
