package check

// Left finds what is left when everybody has given back and gone.
func Left(rec *Record) []Violation {
	v := verdict{checker: "left"}
	for _, what := range rec.Left {
		v.add("%s", what)
	}
	return v.found
}
