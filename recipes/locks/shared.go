package locks

import "github.com/paddock-zk/paddock/internal/session"

// shared is what the locks of one client have in common, through however many
// lock objects.
type shared struct {
	localQueues localQueues
	waitLog     waitLog
}

var sharedSlot = session.Slot[shared]{New: func(s *session.Session) *shared {
	sh := new(shared)
	sh.waitLog.session, sh.waitLog.localQueues = s, &sh.localQueues
	session.Show(s, sh)
	return sh
}}

func sharedOf(s *session.Session) *shared { return sharedSlot.Of(s) }
