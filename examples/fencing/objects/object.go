package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/paddock-zk/paddock/recipes/locks"
)

// fenceHeader is metadata that the store keeps with an object.
const fenceHeader = "X-Amz-Meta-Fence"

// Object is something in an object store, written by who holds a lock. A token
// is that of Hold.FencingToken.
//
// The store knows nothing of fences. It replaces an object only if it is still the
// version that the caller has seen (If-Match with its ETag), and keeps the token as
// metadata. So comparing and raising are one step.
type Object struct {
	URL  string
	HTTP *http.Client
}

// Read returns what the object holds, nil if it does not exist, and raises its
// fence to the token. So a former holder of the lock can no longer change what was
// read. The error matches locks.ErrFenced if a later holder was here.
func (o Object) Read(ctx context.Context, token int64) ([]byte, error) {
	return o.update(ctx, token, nil, false)
}

// Write replaces the object. Errors are those of Read; nothing is written then.
func (o Object) Write(ctx context.Context, data []byte, token int64) error {
	_, err := o.update(ctx, token, data, true)
	return err
}

// update raises the fence and returns what the object then holds, which is the data
// given if it is to be replaced. It begins again when another writer was quicker.
// That ends at the latest when the object has the token of a later holder.
func (o Object) update(ctx context.Context, token int64, data []byte, replace bool) ([]byte, error) {
	for {
		seen, err := o.get(ctx)
		switch {
		case err != nil:
			return nil, err
		case token <= 0 || token < seen.fence:
			return nil, fmt.Errorf("object %s, token %d: %w", o.URL, token, locks.ErrFenced)
		case !replace && token == seen.fence:
			return seen.data, nil
		case !replace:
			data = seen.data
		}
		done, err := o.putIf(ctx, seen.etag, data, token)
		if done || err != nil {
			return data, err
		}
	}
}

// version is an object as it was at one moment.
type version struct {
	data  []byte
	etag  string // "" if there was none
	fence int64
}

func (o Object) get(ctx context.Context) (version, error) {
	r, err := o.send(ctx, http.MethodGet, nil, nil)
	if err != nil {
		return version{}, err
	}
	defer func() { _ = r.Body.Close() }()
	switch r.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return version{}, nil
	default:
		return version{}, fmt.Errorf("get %s: %s", o.URL, r.Status)
	}
	v := version{etag: r.Header.Get("ETag")}
	if text := r.Header.Get(fenceHeader); text != "" {
		if v.fence, err = strconv.ParseInt(text, 10, 64); err != nil {
			return version{}, err
		}
	}
	v.data, err = io.ReadAll(r.Body)
	return v, err
}

// putIf writes if the object is still as it was seen, and reports whether it was.
func (o Object) putIf(ctx context.Context, etag string, data []byte, token int64) (bool, error) {
	h := http.Header{fenceHeader: {strconv.FormatInt(token, 10)}}
	if etag == "" {
		h.Set("If-None-Match", "*")
	} else {
		h.Set("If-Match", etag)
	}
	return o.put(ctx, data, h)
}

func (o Object) put(ctx context.Context, data []byte, h http.Header) (bool, error) {
	r, err := o.send(ctx, http.MethodPut, data, h)
	if err != nil {
		return false, err
	}
	_ = r.Body.Close()
	switch r.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusPreconditionFailed, http.StatusConflict:
		return false, nil
	}
	return false, fmt.Errorf("put %s: %s", o.URL, r.Status)
}

func (o Object) send(ctx context.Context, method string, data []byte, h http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, o.URL, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if h != nil {
		r.Header = h
	}
	return o.HTTP.Do(r)
}

// WriteUnfenced is how it is done without a fence.
func (o Object) WriteUnfenced(ctx context.Context, data []byte) error {
	_, err := o.put(ctx, data, nil)
	return err
}
