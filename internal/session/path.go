package session

// Below is the path of a node under a parent.
func Below(parent, node string) string {
	if parent == "/" {
		return "/" + node
	}
	return parent + "/" + node
}
