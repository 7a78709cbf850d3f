package kit

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing is a test that may fail.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

func (f *failing) FailNow() { runtime.Goexit() }

// fails returns what a part of a test says as it fails, "" if it passes.
func fails(t *testing.T, part func(t testing.TB)) string {
	t.Helper()
	f := &failing{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() { part(f) })
	wg.Wait()
	return f.said
}
