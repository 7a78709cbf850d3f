package znode

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/paddock-zk/paddock/internal/wire"
)

// What a look at a long queue costs, from the reply's bytes on.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 32, 128, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			names := make([]string, n)
			for i, at := range rand.Perm(n) {
				names[i] = fmt.Sprintf("_c_%08x-0000-4000-8000-%012x-lock-%010d", rand.Uint32(), rand.Uint64()>>16, at)
			}
			var e wire.Encoder
			(&wire.GetChildrenResponse{Children: names}).Encode(&e)
			b.ReportAllocs()
			for b.Loop() {
				var list wire.Names
				list.Decode(wire.NewDecoder(e.B))
				snap, err := Parse(list, []Kind{Lock}, true)
				if err != nil || snap.Find(names[0]) < 0 {
					b.Fatal(err)
				}
				snap.Free()
			}
		})
	}
}
