package session

// Join is the path of a node under a parent.
func Join(parent, node string) string {
	if parent == "/" {
		return "/" + node
	}
	return parent + "/" + node
}
