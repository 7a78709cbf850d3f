// Package digestmd5 computes what both sides of SASL's mechanism DIGEST-MD5 say, and reads
// it. It does no more than ZooKeeper needs: quality of protection auth, no
// authentication that follows an earlier one.
//
// Source: RFC 2831; Java's com.sun.security.sasl.digest.
package digestmd5

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Directives are what a message has, by name. Several realms are joined by line breaks.
type Directives map[string]string

// Realms are those of a challenge.
func (d Directives) Realms() []string {
	if _, ok := d["realm"]; !ok {
		return nil
	}
	return strings.Split(d["realm"], "\n")
}

// Parse reads a challenge or a response. Errors do not quote it.
func Parse(message string) (Directives, error) {
	d := make(Directives)
	rest := strings.TrimLeft(message, " \t\r\n,")
	for rest != "" {
		name, after, ok := strings.Cut(rest, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || name == "" {
			return nil, errors.New("a directive has no value")
		}
		value, after, err := parseValue(strings.TrimLeft(after, " \t"))
		if err != nil {
			return nil, fmt.Errorf("directive %q: %w", name, err)
		}
		if before, twice := d[name]; twice {
			if name != "realm" {
				return nil, fmt.Errorf("directive %q comes twice", name)
			}
			value = before + "\n" + value
		}
		d[name] = value
		after = strings.TrimLeft(after, " \t\r\n")
		if after != "" && after[0] != ',' {
			return nil, fmt.Errorf("directive %q: no comma behind it", name)
		}
		rest = strings.TrimLeft(after, " \t\r\n,")
	}
	return d, nil
}

func parseValue(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ", \t\r\n")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			if i++; i == len(s) {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", errors.New("its quotation mark is not closed")
}

// Quote makes a quoted value.
func Quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// Proof is what both sides know, for the proofs that they give to each other.
type Proof struct {
	User, Realm, Password string
	Nonce, CNonce         string
	Count                 string // how often the nonce was used, eight digits
	URI                   string
	AuthzID               string // "" for none
	UTF8                  bool   // both sides speak UTF-8
}

// Client is the client's proof.
func (p Proof) Client() string { return p.response("AUTHENTICATE:") }

// Server is the server's proof, rspauth.
func (p Proof) Server() string { return p.response(":") }

func (p Proof) response(method string) string {
	secret := md5.Sum([]byte(p.latin(p.User) + ":" + p.latin(p.Realm) + ":" + p.latin(p.Password)))
	a1 := string(secret[:]) + ":" + p.Nonce + ":" + p.CNonce
	if p.AuthzID != "" {
		a1 += ":" + p.AuthzID
	}
	return hash(hash(a1) + ":" + p.Nonce + ":" + p.Count + ":" + p.CNonce + ":auth:" + hash(method+p.URI))
}

// latin is a text in ISO 8859-1 if it can be, for the hash alone.
func (p Proof) latin(s string) string {
	if !p.UTF8 {
		return s
	}
	var b []byte
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

func hash(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}
