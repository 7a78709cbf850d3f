package listeners

import "strconv"

// State is a state of the connection, under Curator's names.
//
// Source: Curator ConnectionState. Latent is added.
type State int

const (
	// Latent means never connected yet. It is not an event, only the answer
	// before the first one.
	Latent State = iota
	// Connected is the first connection, once per client.
	Connected
	// Suspended means that there is no connection to a server. Holds are uncertain.
	Suspended
	// Reconnected means connected again; it is the same session if no Lost came
	// in between.
	Reconnected
	// Lost means that the session has expired, or may expire now since no server has
	// answered in time. All its holds have ended.
	Lost
	// ReadOnly means connected to a server that is cut off from the majority.
	ReadOnly
)

// String returns Curator's word, such as "SUSPENDED", and for other values
// their number, as in "State(9)".
func (s State) String() string {
	words := [...]string{"LATENT", "CONNECTED", "SUSPENDED", "RECONNECTED", "LOST", "READ_ONLY"}
	if s < 0 || int(s) >= len(words) {
		return "State(" + strconv.Itoa(int(s)) + ")"
	}
	return words[s]
}

// IsConnected is true for Connected, Reconnected and ReadOnly.
func (s State) IsConnected() bool { return s == Connected || s == Reconnected || s == ReadOnly }
