package tree

// Release is a version of ZooKeeper, each of which answers otherwise here and
// there.
type Release int

// The releases that there are.
const (
	Release380 Release = iota
	Release393
	Release396
)
