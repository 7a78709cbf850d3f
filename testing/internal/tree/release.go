package tree

// Release is a version of ZooKeeper. Versions differ in some answers.
type Release int

// The releases that there are.
const (
	Release380 Release = iota
	Release393
	Release396
)
