package sim

// plant is a bug that the simulation has on purpose, to see the judges find it.
type plant struct {
	name  string
	judge string // that has to find it
	stale bool   // registers are read from whoever answers
}
