package check

// ReadersAndWriters finds a reader and a writer who believed in one lock at the
// same time.
func ReadersAndWriters(rec *Record) []Violation {
	v := verdict{checker: "readers and writers"}
	overlaps(rec, func(a, b Hold) bool {
		return a.Mode == Alone && b.Mode == Shared || a.Mode == Shared && b.Mode == Alone
	}, &v)
	return v.found
}
