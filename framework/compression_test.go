package framework

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGzip(t *testing.T) {
	g := Gzip()
	for _, data := range [][]byte{nil, {}, []byte("x"), make([]byte, 1<<20)} {
		packed, err := g.Compress("/a", data)
		require.NoError(t, err)
		again, err := g.Compress("/a", data)
		require.NoError(t, err)
		assert.Equal(t, packed, again, "the same each time")
		plain, err := g.Decompress("/a", packed)
		require.NoError(t, err)
		assert.Len(t, plain, len(data))
		assert.Equal(t, append([]byte{}, data...), plain)
	}
	packed, err := g.Compress("/a", []byte("some text"))
	require.NoError(t, err)
	for name, bad := range map[string][]byte{
		"empty": {}, "no gzip": []byte("some text"), "cut": packed[:len(packed)-3], "behind the end": append(packed[:len(packed):len(packed)], 'x'),
		"length": flip(packed, len(packed)-1), "checksum": flip(packed, len(packed)-8), "data": flip(packed, 12),
	} {
		_, err := g.Decompress("/a", bad)
		assert.Error(t, err, name)
	}
}

func flip(data []byte, i int) []byte {
	other := append([]byte(nil), data...)
	other[i] ^= 0xff
	return other
}
