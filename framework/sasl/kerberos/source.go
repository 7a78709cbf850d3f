package kerberos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
)

// keytabFile has the client's own key.
type keytabFile struct{ file, principal string }

func (k *keytabFile) client(conf realms) (principal, error) {
	p := parsePrincipal(k.principal)
	if p.realm == "" {
		p.realm = conf.LibDefaults.DefaultRealm
	}
	switch {
	case p.PrincipalNameString() == "":
		return p, errors.New("the principal is empty")
	case p.realm == "":
		return p, fmt.Errorf("the principal %s has no realm, and krb5.conf no default_realm", k.principal)
	}
	return p, nil
}

func (k *keytabFile) login(ctx context.Context, conf realms, old *session) (*session, error) {
	if old != nil && old.tgt.fresh(time.Now()) {
		return old, nil
	}
	client, err := k.client(conf)
	if err != nil {
		return nil, err
	}
	data, err := read(k.file)
	if err != nil {
		return nil, fmt.Errorf("keytab: %w", err)
	}
	keys := keytab.New()
	// What the library says of a bad file has the keys in it.
	if guard(func() error { return keys.Unmarshal(data) }) != nil {
		return nil, fmt.Errorf("%s is no keytab", k.file)
	}
	creds := credentials.NewFromPrincipalName(client.PrincipalName, client.realm).WithKeytab(keys)
	tgt, err := firstTicket(ctx, conf, client, creds, k.file)
	if err != nil {
		return nil, err
	}
	return newSession(client, tgt), nil
}

// cacheFile has a ticket that somebody else has asked for.
type cacheFile struct{ file string }

func (c *cacheFile) client(realms) (principal, error) {
	cache, _, err := c.load()
	if err != nil {
		return principal{}, err
	}
	return principal{cache.DefaultPrincipal.PrincipalName, cache.DefaultPrincipal.Realm}, nil
}

func (c *cacheFile) load() (cache *credentials.CCache, file string, err error) {
	file = c.file
	if file == "" {
		file = os.Getenv("KRB5CCNAME")
	}
	if file == "" {
		file = "/tmp/krb5cc_" + strconv.Itoa(os.Getuid())
	}
	file = strings.TrimPrefix(file, "FILE:")
	if kind, _, ok := strings.Cut(file, ":"); ok && kind == strings.ToUpper(kind) && len(kind) > 1 {
		return nil, file, fmt.Errorf("the credential cache %s is of the kind %s, and only files will do", file, kind)
	}
	data, err := read(file)
	if err != nil {
		return nil, file, fmt.Errorf("credential cache: %w: kinit makes one", err)
	}
	cache = new(credentials.CCache)
	if guard(func() error { return cache.Unmarshal(data) }) != nil {
		return nil, file, fmt.Errorf("%s is no credential cache", file)
	}
	return cache, file, nil
}

func (c *cacheFile) login(ctx context.Context, conf realms, old *session) (*session, error) {
	cache, file, err := c.load()
	if err != nil {
		return nil, err
	}
	client := principal{cache.DefaultPrincipal.PrincipalName, cache.DefaultPrincipal.Realm}
	var tgt *credentials.Credential
	for _, entry := range cache.GetEntries() {
		if entry.Server.PrincipalName.Equal(krbtgt(client.realm)) && entry.Client.PrincipalName.Equal(client.PrincipalName) &&
			(tgt == nil || entry.EndTime.After(tgt.EndTime)) {
			tgt = entry
		}
	}
	switch now := time.Now(); {
	case tgt == nil:
		return nil, fmt.Errorf("%s has no ticket of %s for krbtgt/%s: kinit gets one", file, client, client.realm)
	case old != nil && bytes.Equal(old.origin, tgt.Ticket) && (old.tgt.fresh(now) || !old.tgt.renewable && now.Before(old.tgt.till)):
		return old, nil
	case old != nil && bytes.Equal(old.origin, tgt.Ticket):
		// As it was renewed, if it was.
	default:
		t := &ticket{key: tgt.Key, from: tgt.StartTime, till: tgt.EndTime, renewable: types.IsFlagSet(&tgt.TicketFlags, flags.Renewable) && now.Before(tgt.RenewTill)}
		if guard(func() error { return t.Unmarshal(tgt.Ticket) }) != nil {
			return nil, fmt.Errorf("%s is no credential cache", file)
		}
		old = newSession(client, t)
		old.origin = tgt.Ticket
	}
	now := time.Now()
	if !now.Before(old.tgt.till) {
		return nil, fmt.Errorf("the ticket of %s in %s has ended at %s: kinit gets another", client, file, old.tgt.till.Format(time.RFC3339))
	}
	if old.tgt.fresh(now) || !old.tgt.renewable {
		return old, nil
	}
	renewed, err := old.renew(ctx, conf)
	if err != nil { // it is good for a while
		return old, nil //nolint:nilerr // what is left of it serves
	}
	return renewed, nil
}

// read reads a file. Its error is text: an error number of the system's is a net.Error, too.
func read(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.New(err.Error())
	}
	return data, nil
}

// guard is fn without its panics. The library's decoders have them for bytes that end early.
func guard(fn func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it is malformed")
		}
	}()
	return fn()
}
