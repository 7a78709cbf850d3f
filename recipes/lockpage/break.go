package lockpage

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/paddock-zk/paddock/framework"
)

func (p *page) mayBreak(r *http.Request) bool { return p.allowed != nil && p.allowed(r) }

// serveBreak deletes the node of one participant.
func (p *page) serveBreak(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	switch {
	case !p.mayBreak(r):
		p.fail(w, r, http.StatusForbidden, errors.New("breaking locks is not allowed here"))
		return
	case p.origin.Check(r) != nil:
		p.fail(w, r, http.StatusForbidden, errors.New("the request comes from another site"))
		return
	}
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, http.StatusBadRequest, err)
		return
	}
	if !p.tokens.valid(r, r.PostForm.Get("token")) {
		p.fail(w, r, http.StatusForbidden, errors.New("the form is too old, or was made elsewhere: load the page of the lock again"))
		return
	}
	q, _, status, err := p.look(r.Context(), r.PostForm)
	if err != nil {
		p.fail(w, r, status, err)
		return
	}
	node := r.PostForm.Get("node")
	if q.Place(node) == 0 {
		p.fail(w, r, http.StatusNotFound, fmt.Errorf("%s does not stand in the queue of %s: it has gone by itself, or never did", node, q.Path))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	err = p.client.Delete(ctx, node, framework.AnyVersion, framework.Idempotent())
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		p.fail(w, r, statusOf(err), err)
		return
	}
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, map[string]string{"deleted": node})
		return
	}
	back := url.Values{"path": {q.Path}, "deleted": {node}}
	if leases := r.PostForm.Get("leases"); leases != "" && leases != "0" {
		back.Set("leases", leases)
	}
	w.Header().Set("Location", "?"+back.Encode()) // wherever the page is mounted
	w.WriteHeader(http.StatusSeeOther)
}

// tokens are what forms have, so that another site cannot forge them. A browser has a
// cookie that other sites cannot read, and a form made for it the cookie's signature.
type tokens struct{ key []byte }

const cookieName = "paddock-locks"

func newTokens() tokens {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return tokens{key}
}

func (t tokens) sign(value string) string {
	mac := hmac.New(sha256.New, t.key)
	_, _ = mac.Write([]byte(value)) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// issue returns the token of a browser. A browser that has no cookie gets one.
func (t tokens) issue(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil || cookie.Value == "" {
		cookie = &http.Cookie{Name: cookieName, Value: rand.Text(), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil}
		http.SetCookie(w, cookie)
	}
	return t.sign(cookie.Value)
}

func (t tokens) valid(r *http.Request, token string) bool {
	cookie, err := r.Cookie(cookieName)
	return err == nil && cookie.Value != "" && hmac.Equal([]byte(token), []byte(t.sign(cookie.Value)))
}
