package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Store is an object store in this process, as far as the example needs one:
// GET and PUT over HTTP, versions by ETag, If-Match and If-None-Match. Those of
// the large providers take the same requests, after signing.
type Store struct {
	mu      sync.Mutex // guards the fields below
	objects map[string]stored
	puts    int
	written []string // what was put, in the order in which it was accepted
}

type stored struct {
	data []byte
	etag string
	meta string
}

// NewStore is an empty store.
func NewStore() *Store { return &Store{objects: make(map[string]stored)} }

// ServeHTTP implements http.Handler.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists := s.objects[r.URL.Path]
	switch r.Method {
	case http.MethodGet:
		if !exists {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", old.etag)
		if old.meta != "" {
			w.Header().Set(fenceHeader, old.meta)
		}
		_, _ = w.Write(old.data)
	case http.MethodPut:
		match := r.Header.Get("If-Match")
		if match != "" && match != old.etag || r.Header.Get("If-None-Match") == "*" && exists {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		s.puts++
		etag := fmt.Sprintf(`"%d-%x"`, s.puts, sha256.Sum256(body))
		s.objects[r.URL.Path] = stored{body, etag, r.Header.Get(fenceHeader)}
		s.written = append(s.written, string(body))
		w.Header().Set("ETag", etag)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// Written lists what was put, in the order in which it was accepted.
func (s *Store) Written() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.written...)
}
