//go:build realzk

package bench

import (
	"testing"

	"github.com/paddock-zk/paddock/internal/realzk"
)

func BenchmarkReal(b *testing.B) {
	e := realzk.StartT(b, realzk.Options{JVMArgs: []string{"-Xmx512m", "-XX:TieredStopAtLevel=4"}})
	b.Run("uncontended", func(b *testing.B) { uncontended(b, e.Addr(0)) })
	b.Run("contended-8", func(b *testing.B) { contended(b, e.Addr(0)) })
}
