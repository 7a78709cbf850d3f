package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLines(t *testing.T) {
	for source, want := range map[string]int{
		"":                                   0,
		"// only words\n\n/* and\nmore */\n": 0,
		"package a // with a comment\n":      1,
		"package a\n\nvar x = `one\ntwo\n\nfour`\n":  5,
		"package a\n\nfunc f() { g(1,\n\t2) }\n}\n":  4,
		"package a\n\nvar x, y = `one\ntwo`, `2\n3`": 4,
	} {
		assert.Equal(t, want, lines([]byte(source)), source)
	}
}

func TestFields(t *testing.T) {
	fields := make(map[string]int)
	const source = "package a\ntype b struct {\n\tc, d int\n\tsync.Mutex\n\te struct{ f, g, h int }\n}\ntype i int\n"
	assert.NoError(t, countFields("x/a.go", []byte(source), fields))
	assert.Equal(t, map[string]int{"x.b": 4}, fields)
}

func TestRan(t *testing.T) {
	functions, files := ran("m/a.go:1:\tf\t100.0%\nm/a.go:5:\tg\t12.5%\nm/b.go:3:\th\t0.0%\nm/test/weigh/main.go:1:\tcount\t50.0%\ntotal (statements) 40.0%\n")
	assert.Equal(t, [2]int{2, 1}, [2]int{functions, files})
}
