package locks

// HoldState says how sure the client is that it holds a lock.
type HoldState int

// The states of a hold, in the order in which they can follow. Only Held and Uncertain
// may alternate.
const (
	// Held says that nobody else has the lock.
	Held HoldState = iota + 1
	// Uncertain says that the connection is suspended, or that the client is connected
	// again and has not seen the node yet. Nobody else has the lock, since the session
	// lease has not run out.
	Uncertain
	// Lost says that another owner may have the lock.
	Lost
	// Released says that it was given back.
	Released
)

// String returns the state in one word.
func (s HoldState) String() string {
	switch s {
	case Held:
		return "HELD"
	case Uncertain:
		return "UNCERTAIN"
	case Lost:
		return "LOST"
	case Released:
		return "RELEASED"
	}
	return "NONE"
}
