package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/paddock-zk/paddock/internal/dns"
)

// ticket is a ticket with the key that goes with it.
type ticket struct {
	messages.Ticket
	key        types.EncryptionKey
	from, till time.Time
	renewable  bool
}

func newTicket(t messages.Ticket, e messages.EncKDCRepPart) *ticket {
	from := e.StartTime
	if from.IsZero() {
		from = e.AuthTime
	}
	return &ticket{Ticket: t, key: e.Key, from: from, till: e.EndTime, renewable: len(e.Flags.Bytes) > 0 && types.IsFlagSet(&e.Flags, flags.Renewable)}
}

// soon is the most that a ticket may have left to be replaced.
const soon = 5 * time.Minute

// fresh is whether a ticket does not end soon.
func (t *ticket) fresh(now time.Time) bool {
	return t.till.Sub(now) > min(t.till.Sub(t.from)/5, soon)
}

// session is a ticket for tickets, and what was got for it.
type session struct {
	client principal
	tgt    *ticket
	origin []byte // of a credential cache: the ticket that the file has

	mu       sync.Mutex         // guards the field below
	services map[string]*ticket // that no server has refused, by principal
}

func newSession(client principal, tgt *ticket) *session {
	return &session{client: client, tgt: tgt, services: make(map[string]*ticket)}
}

// ticketFor is a ticket for a server, the one of before as long as it is fresh.
func (s *session) ticketFor(ctx context.Context, conf realms, server principal) (*ticket, error) {
	s.mu.Lock()
	t := s.services[server.String()]
	s.mu.Unlock()
	if t != nil && t.fresh(time.Now()) {
		return t, nil
	}
	tgt, realm := s.tgt, s.client.realm
	if server.realm != realm {
		var err error
		if tgt, err = s.ask(ctx, conf, tgt, realm, krbtgt(server.realm), false); err != nil {
			return nil, err
		}
		realm = server.realm
	}
	t, err := s.ask(ctx, conf, tgt, realm, server.PrincipalName, false)
	if err == nil {
		s.shown(server, t, true)
	}
	return t, err
}

// shown keeps a ticket, or forgets it while a server looks at it. So one that the server
// refuses, since its own key is another now, is not shown again.
func (s *session) shown(server principal, t *ticket, accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if accepted {
		s.services[server.String()] = t
	} else if s.services[server.String()] == t {
		delete(s.services, server.String())
	}
}

// renew is the session with a ticket that lasts longer.
func (s *session) renew(ctx context.Context, conf realms) (*session, error) {
	tgt, err := s.ask(ctx, conf, s.tgt, s.client.realm, krbtgt(s.client.realm), true)
	if err != nil {
		return nil, err
	}
	renewed := newSession(s.client, tgt)
	renewed.origin = s.origin
	return renewed, nil
}

// ask asks the KDC of a realm for a ticket.
func (s *session) ask(ctx context.Context, conf realms, tgt *ticket, realm string, name types.PrincipalName, renewal bool) (*ticket, error) {
	about := question{realm: realm, client: s.client, server: principal{name, realm}}
	request, err := messages.NewTGSReq(s.client.PrincipalName, realm, conf.Config, tgt.Ticket, tgt.key, name, renewal)
	if err != nil {
		return nil, about.failed(err)
	}
	body, err := request.Marshal()
	if err != nil {
		return nil, about.failed(err)
	}
	reply, err := about.send(ctx, conf, body)
	if err != nil {
		return nil, err
	}
	var r messages.TGSRep
	err = guard(func() error {
		if err := r.Unmarshal(reply); err != nil {
			return err
		}
		if err := r.DecryptEncPart(tgt.key); err != nil {
			return err
		}
		_, err := r.Verify(conf.Config, request)
		return err
	})
	if err != nil {
		return nil, about.failed(err)
	}
	return newTicket(r.Ticket, r.DecryptedEncPart), nil
}

// firstTicket is a ticket for tickets, by the client's own key.
func firstTicket(ctx context.Context, conf realms, client principal, creds *credentials.Credentials, file string) (*ticket, error) {
	about := question{realm: client.realm, client: client, server: principal{krbtgt(client.realm), client.realm}, keytab: file}
	request, err := messages.NewASReqForTGT(client.realm, conf.Config, client.PrincipalName)
	if err != nil {
		return nil, about.failed(err)
	}
	body, err := request.Marshal()
	if err != nil {
		return nil, about.failed(err)
	}
	reply, err := about.send(ctx, conf, body)
	var refusal messages.KRBError
	if errors.As(err, &refusal) && refusal.ErrorCode == errorcode.KDC_ERR_PREAUTH_REQUIRED {
		proof, err := about.proof(creds, refusal.EData)
		if err != nil {
			return nil, err
		}
		request.PAData = append(request.PAData, proof)
		if body, err = request.Marshal(); err != nil {
			return nil, about.failed(err)
		}
		reply, err = about.send(ctx, conf, body)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	var r messages.ASRep
	if err := guard(func() error { return r.Unmarshal(reply) }); err != nil {
		return nil, about.failed(err)
	}
	if guard(func() error { _, err := r.DecryptEncPart(creds); return err }) != nil {
		return nil, about.staleKey()
	}
	if err := guard(func() error { _, err := r.Verify(conf.Config, creds, request); return err }); err != nil {
		return nil, about.failed(err)
	}
	return newTicket(r.Ticket, r.DecryptedEncPart), nil
}

// krbtgt is the name of the KDC of a realm.
func krbtgt(realm string) types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm}}
}

// question is what errors are about.
type question struct {
	realm          string // whose KDC is asked
	client, server principal
	keytab         string // the file with the client's key, or ""
}

// failed is what went wrong without the KDC having refused anything.
func (q question) failed(err error) error {
	return fmt.Errorf("ticket of %s for %s from the KDC of %s: %w", q.client, q.server, q.realm, err)
}

func (q question) staleKey() error {
	return fmt.Errorf("the KDC of %s has another key for %s than %s: the keytab is older than the principal's password, or of another realm", q.realm, q.client, q.keytab)
}

// refused says what to do about a refusal of the KDC.
func (q question) refused(e messages.KRBError) error {
	who := "the KDC of " + q.realm
	switch e.ErrorCode {
	case errorcode.KDC_ERR_PREAUTH_REQUIRED:
		return e
	case errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN:
		return fmt.Errorf("%s does not know the client %s", who, q.client)
	case errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN:
		return fmt.Errorf("%s does not know the server %s: connect by the name that the server's principal has, or set ServerPrincipal or Service", who, q.server)
	case errorcode.KDC_ERR_PREAUTH_FAILED:
		return q.staleKey()
	case errorcode.KRB_AP_ERR_SKEW:
		return fmt.Errorf("the clock of %s differs from this machine's by %v: set the clocks", who, time.Until(e.STime).Round(time.Second))
	case errorcode.KRB_AP_ERR_TKT_EXPIRED:
		return fmt.Errorf("%s says that the ticket of %s has ended: get another, and compare the clocks", who, q.client)
	}
	return fmt.Errorf("%s refuses %s a ticket for %s: %s", who, q.client, q.server, errorcode.Lookup(e.ErrorCode))
}

// proof is the time, encrypted with the client's key, of a kind that the KDC takes.
func (q question) proof(creds *credentials.Credentials, offers []byte) (types.PAData, error) {
	var kinds []int32
	err := guard(func() error {
		var all types.PADataSequence
		if err := all.Unmarshal(offers); err != nil {
			return err
		}
		for _, pa := range all {
			if pa.PADataType == patype.PA_ETYPE_INFO2 {
				infos, err := pa.GetETypeInfo2()
				if err != nil {
					return err
				}
				for _, info := range infos {
					kinds = append(kinds, info.EType)
				}
			}
		}
		return nil
	})
	if err != nil {
		return types.PAData{}, q.failed(err)
	}
	for _, kind := range kinds {
		key, kvno, err := creds.Keytab().GetEncryptionKey(creds.CName(), creds.Realm(), 0, kind)
		if err != nil {
			continue
		}
		stamp, err := types.GetPAEncTSEncAsnMarshalled()
		if err != nil {
			return types.PAData{}, q.failed(err)
		}
		sealed, err := crypto.GetEncryptedData(stamp, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP, kvno)
		if err != nil {
			return types.PAData{}, q.failed(err)
		}
		value, err := sealed.Marshal()
		if err != nil {
			return types.PAData{}, q.failed(err)
		}
		return types.PAData{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: value}, nil
	}
	return types.PAData{}, fmt.Errorf("%s has no key of %s of the types %v, which the KDC of %s takes", q.keytab, q.client, kinds, q.realm)
}

// send asks the KDCs of the realm, one after the other, until one answers. That none does is
// a net.Error.
func (q question) send(ctx context.Context, conf realms, request []byte) ([]byte, error) {
	kdcs, err := conf.kdcs(ctx, q.realm)
	if err != nil {
		return nil, err
	}
	var all []error
	for i, addr := range kdcs {
		reply, err := conf.sendTo(ctx, addr, request, len(kdcs)-i)
		if err != nil {
			all = append(all, err)
			continue
		}
		var refusal messages.KRBError
		if guard(func() error { return refusal.Unmarshal(reply) }) == nil {
			return nil, q.refused(refusal)
		}
		return reply, nil
	}
	return nil, fmt.Errorf("the KDC of %s: %w", q.realm, errors.Join(all...))
}

// kdcs are the addresses of a realm's KDCs.
func (r realms) kdcs(ctx context.Context, realm string) ([]string, error) {
	for _, known := range r.Realms {
		if known.Realm == realm && len(known.KDC) > 0 {
			return known.KDC, nil
		}
	}
	_, found, err := dns.Resolver().LookupSRV(ctx, "kerberos", "tcp", realm)
	if err != nil {
		return nil, fmt.Errorf("krb5.conf lists no KDC of %s, and DNS: %w", realm, err)
	}
	var all []string
	for _, f := range found {
		all = append(all, net.JoinHostPort(strings.TrimSuffix(f.Target, "."), strconv.Itoa(int(f.Port))))
	}
	return all, nil
}

const (
	patience   = 5 * time.Second // with one KDC, if ctx has no deadline
	largestKDC = 1 << 20         // bytes of a reply
)

// sendTo sends a request to one KDC, over TCP. others is how many are left, this one
// included: they share the time that is left.
func (r realms) sendTo(ctx context.Context, addr string, request []byte, others int) (_ []byte, err error) {
	wait := patience
	if end, ok := ctx.Deadline(); ok {
		wait = time.Until(end) / time.Duration(others)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	conn, err := r.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	defer func() {
		if err != nil { // whatever it is, it is the network's
			err = &net.OpError{Op: "ask", Net: "tcp", Addr: conn.RemoteAddr(), Err: err}
		}
	}()
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > largestKDC {
		return nil, fmt.Errorf("a reply of %d bytes", n)
	}
	reply := make([]byte, n)
	_, err = io.ReadFull(conn, reply)
	return reply, err
}
