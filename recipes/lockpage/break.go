package lockpage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
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
		p.fail(w, r, http.StatusForbidden, fmt.Errorf("the request comes from another site: its origin is %q, and this host %q. "+
			"If a proxy in between changes the host, lockpage.TrustOrigin makes an origin ours", r.Header.Get("Origin"), r.Host))
		return
	}
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, http.StatusBadRequest, err)
		return
	}
	if err := checkToken(r); err != nil {
		p.fail(w, r, http.StatusForbidden, err)
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

const cookieName = "paddock-locks"

// issue returns the token of a browser's forms, so that another site cannot forge them. A
// browser that has no cookie gets one.
func issue(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil || cookie.Value == "" {
		cookie = &http.Cookie{Name: cookieName, Value: rand.Text(), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil}
		http.SetCookie(w, cookie)
	}
	return token(cookie.Value)
}

// token is what forms made for a cookie have. Other sites cannot read the cookie. It takes
// no key of this process, so any replica of a service takes the form that another made.
func token(cookie string) string {
	sum := sha256.Sum256([]byte("the form of paddock's locks: " + cookie))
	return hex.EncodeToString(sum[:])
}

// checkToken says why a form is refused, if it is.
func checkToken(r *http.Request) error {
	cookie, err := r.Cookie(cookieName)
	if err != nil || cookie.Value == "" {
		return errors.New("the browser sent no cookie of this page: load the page of the lock again, and let it set one")
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(token(cookie.Value))) != 1 {
		return errors.New("the form was not made for this browser: load the page of the lock again")
	}
	return nil
}
