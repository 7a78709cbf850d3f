package framework

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// Compression changes data on its way to the servers and back. It is used where
// Compressed is given, by many goroutines at once. path is as the caller gave
// it, so that an implementation can go by it.
//
// Source: Curator's CompressionProvider.
type Compression interface {
	Compress(path string, data []byte) ([]byte, error)
	Decompress(path string, data []byte) ([]byte, error)
}

// Gzip is the compression of Config's default, which Curator's
// GzipCompressionProvider reads and writes as well. Decompress refuses what is
// damaged or has something behind its end; what it returns can be a thousand
// times as long as its input.
func Gzip() Compression { return gzipCompression{} }

type gzipCompression struct{}

func (gzipCompression) Compress(_ string, data []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (gzipCompression) Decompress(_ string, data []byte) ([]byte, error) {
	in := bytes.NewReader(data)
	r, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	r.Multistream(false)
	out, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if in.Len() > 0 {
		return nil, fmt.Errorf("%d bytes behind the end", in.Len())
	}
	return out, nil
}

// CompressedOption may be given to Create, Set, Get and GetW.
type CompressedOption struct{}

// Compressed says that the node's data is compressed on the servers, by
// Config.Compression. A call that writes compresses it, also default data, and a
// call that reads decompresses it. The nodes of locks are never compressed. The
// operations of a Transaction write data as it is given.
//
// Source: Curator's compressed and decompressed.
func Compressed() CompressedOption { return CompressedOption{} }

func (CompressedOption) create(o *createOptions) { o.compressed = true }
func (CompressedOption) set(o *setOptions)       { o.compressed = true }
func (CompressedOption) get(o *getOptions)       { o.compressed = true }

// compress is what stands on the servers for data.
func (b *base) compress(path string, data []byte) ([]byte, error) {
	out, err := b.plan.Compression.Compress(path, data)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if out == nil {
		out = []byte{}
	}
	return out, nil
}

// decompressed is what a read gives to the caller.
func (o *op) decompressed(path string, data []byte, options getOptions) ([]byte, error) {
	if !options.compressed {
		return data, nil
	}
	out, err := o.plan.Compression.Decompress(path, data)
	if err != nil {
		return nil, o.fail(fmt.Errorf("decompress: %w", err))
	}
	return out, nil
}
