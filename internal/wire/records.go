package wire

// Stat is a node's metadata. Its fields are those of zk.Stat, so that the two
// convert into each other.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// Encode implements Record.
func (s *Stat) Encode(e *Encoder) {
	e.Int64(s.Czxid)
	e.Int64(s.Mzxid)
	e.Int64(s.Ctime)
	e.Int64(s.Mtime)
	e.Int32(s.Version)
	e.Int32(s.Cversion)
	e.Int32(s.Aversion)
	e.Int64(s.EphemeralOwner)
	e.Int32(s.DataLength)
	e.Int32(s.NumChildren)
	e.Int64(s.Pzxid)
}

// keeperContainer is the owner of a container at a ClickHouse Keeper. ZooKeeper says 0 of a
// container, as of any node that goes with no session.
const keeperContainer = -1 << 63

// Decode implements Record. A container has the owner 0, whoever says it.
func (s *Stat) Decode(d *Decoder) {
	s.Czxid = d.Int64()
	s.Mzxid = d.Int64()
	s.Ctime = d.Int64()
	s.Mtime = d.Int64()
	s.Version = d.Int32()
	s.Cversion = d.Int32()
	s.Aversion = d.Int32()
	if s.EphemeralOwner = d.Int64(); s.EphemeralOwner == keeperContainer {
		s.EphemeralOwner = 0
	}
	s.DataLength = d.Int32()
	s.NumChildren = d.Int32()
	s.Pzxid = d.Int64()
}

// ACL is one entry of an access list, with the fields of zk.ACL.
type ACL struct {
	Perms  int32
	Scheme string
	ID     string
}

// ConnectRequest opens or renews a session.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	Timeout         int32 // milliseconds
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	// HasReadOnly is whether the request has the ReadOnly byte, which clients older than 3.4 leave out.
	HasReadOnly bool
}

// Encode implements Record.
func (r *ConnectRequest) Encode(e *Encoder) {
	e.Int32(r.ProtocolVersion)
	e.Int64(r.LastZxidSeen)
	e.Int32(r.Timeout)
	e.Int64(r.SessionID)
	e.Bytes(r.Password)
	if r.HasReadOnly {
		e.Bool(r.ReadOnly)
	}
}

// Decode implements Record.
func (r *ConnectRequest) Decode(d *Decoder) {
	r.ProtocolVersion = d.Int32()
	r.LastZxidSeen = d.Int64()
	r.Timeout = d.Int32()
	r.SessionID = d.Int64()
	r.Password = d.Bytes()
	if r.HasReadOnly = d.Len() > 0; r.HasReadOnly {
		r.ReadOnly = d.Bool()
	}
}

// ConnectResponse answers a ConnectRequest. SessionID 0 says that the session
// asked for is gone.
type ConnectResponse struct {
	ProtocolVersion int32
	Timeout         int32 // milliseconds
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	// HasReadOnly is whether the response has the ReadOnly byte.
	HasReadOnly bool
}

// Encode implements Record.
func (r *ConnectResponse) Encode(e *Encoder) {
	e.Int32(r.ProtocolVersion)
	e.Int32(r.Timeout)
	e.Int64(r.SessionID)
	e.Bytes(r.Password)
	if r.HasReadOnly {
		e.Bool(r.ReadOnly)
	}
}

// Decode implements Record.
func (r *ConnectResponse) Decode(d *Decoder) {
	r.ProtocolVersion = d.Int32()
	r.Timeout = d.Int32()
	r.SessionID = d.Int64()
	r.Password = d.Bytes()
	if r.HasReadOnly = d.Len() > 0; r.HasReadOnly {
		r.ReadOnly = d.Bool()
	}
}

// RequestHeader begins each request.
type RequestHeader struct {
	Xid int32
	Op  Op
}

// RequestHeaderLen is the encoded size of a RequestHeader.
const RequestHeaderLen = 8

// Encode implements Record.
func (h *RequestHeader) Encode(e *Encoder) {
	e.Int32(h.Xid)
	e.Int32(int32(h.Op))
}

// Decode implements Record.
func (h *RequestHeader) Decode(d *Decoder) {
	h.Xid = d.Int32()
	h.Op = Op(d.Int32())
}

// ReplyHeader begins each reply and notification.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Code Code
}

// ReplyHeaderLen is the encoded size of a ReplyHeader.
const ReplyHeaderLen = 16

// Encode implements Record.
func (h *ReplyHeader) Encode(e *Encoder) {
	e.Int32(h.Xid)
	e.Int64(h.Zxid)
	e.Int32(int32(h.Code))
}

// Decode implements Record.
func (h *ReplyHeader) Decode(d *Decoder) {
	h.Xid = d.Int32()
	h.Zxid = d.Int64()
	h.Code = Code(d.Int32())
}

// WatcherEvent is a notification's body.
type WatcherEvent struct {
	Type  EventType
	State int32
	Path  string
}

// Encode implements Record.
func (r *WatcherEvent) Encode(e *Encoder) {
	e.Int32(int32(r.Type))
	e.Int32(r.State)
	e.String(r.Path)
}

// Decode implements Record.
func (r *WatcherEvent) Decode(d *Decoder) {
	r.Type = EventType(d.Int32())
	r.State = d.Int32()
	r.Path = d.String()
}

// CreateRequest is the body of OpCreate, OpCreate2 and OpCreateContainer.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags Flags
}

// Encode implements Record.
func (r *CreateRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Bytes(r.Data)
	e.ACLs(r.ACL)
	e.Int32(int32(r.Flags))
}

// Decode implements Record.
func (r *CreateRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Data = d.Bytes()
	r.ACL = d.ACLs()
	r.Flags = Flags(d.Int32())
}

// CreateTTLRequest is the body of OpCreateTTL.
type CreateTTLRequest struct {
	CreateRequest
	TTL int64 // milliseconds
}

// Encode implements Record.
func (r *CreateTTLRequest) Encode(e *Encoder) {
	r.CreateRequest.Encode(e)
	e.Int64(r.TTL)
}

// Decode implements Record.
func (r *CreateTTLRequest) Decode(d *Decoder) {
	r.CreateRequest.Decode(d)
	r.TTL = d.Int64()
}

// CreateResponse answers OpCreate.
type CreateResponse struct{ Path string }

// Encode implements Record.
func (r *CreateResponse) Encode(e *Encoder) { e.String(r.Path) }

// Decode implements Record.
func (r *CreateResponse) Decode(d *Decoder) { r.Path = d.String() }

// Create2Response answers OpCreate2, OpCreateContainer and OpCreateTTL.
type Create2Response struct {
	Path string
	Stat Stat
}

// Encode implements Record.
func (r *Create2Response) Encode(e *Encoder) {
	e.String(r.Path)
	r.Stat.Encode(e)
}

// Decode implements Record.
func (r *Create2Response) Decode(d *Decoder) {
	r.Path = d.String()
	r.Stat.Decode(d)
}

// PathVersionRequest is the body of OpDelete and OpCheck.
type PathVersionRequest struct {
	Path    string
	Version int32
}

// Encode implements Record.
func (r *PathVersionRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int32(r.Version)
}

// Decode implements Record.
func (r *PathVersionRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Version = d.Int32()
}

// PathWatchRequest is the body of OpExists, OpGetData, OpGetChildren and OpGetChildren2.
type PathWatchRequest struct {
	Path  string
	Watch bool
}

// Encode implements Record.
func (r *PathWatchRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Bool(r.Watch)
}

// Decode implements Record.
func (r *PathWatchRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Watch = d.Bool()
}

// PathRequest is the body of OpGetACL, OpSync, OpGetAllChildrenNumber,
// OpGetEphemerals (a prefix) and OpDeleteContainer.
type PathRequest struct{ Path string }

// Encode implements Record.
func (r *PathRequest) Encode(e *Encoder) { e.String(r.Path) }

// Decode implements Record.
func (r *PathRequest) Decode(d *Decoder) { r.Path = d.String() }

// PathResponse answers OpSync.
type PathResponse = PathRequest

// SetDataRequest is the body of OpSetData.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Encode implements Record.
func (r *SetDataRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Bytes(r.Data)
	e.Int32(r.Version)
}

// Decode implements Record.
func (r *SetDataRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Data = d.Bytes()
	r.Version = d.Int32()
}

// StatResponse answers OpExists, OpSetData and OpSetACL.
type StatResponse struct{ Stat Stat }

// Encode implements Record.
func (r *StatResponse) Encode(e *Encoder) { r.Stat.Encode(e) }

// Decode implements Record.
func (r *StatResponse) Decode(d *Decoder) { r.Stat.Decode(d) }

// GetDataResponse answers OpGetData and OpReconfig.
type GetDataResponse struct {
	Data []byte
	Stat Stat
}

// Encode implements Record.
func (r *GetDataResponse) Encode(e *Encoder) {
	e.Bytes(r.Data)
	r.Stat.Encode(e)
}

// Decode implements Record.
func (r *GetDataResponse) Decode(d *Decoder) {
	r.Data = d.Bytes()
	r.Stat.Decode(d)
}

// SetACLRequest is the body of OpSetACL.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Encode implements Record.
func (r *SetACLRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.ACLs(r.ACL)
	e.Int32(r.Version)
}

// Decode implements Record.
func (r *SetACLRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.ACL = d.ACLs()
	r.Version = d.Int32()
}

// GetACLResponse answers OpGetACL.
type GetACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Encode implements Record.
func (r *GetACLResponse) Encode(e *Encoder) {
	e.ACLs(r.ACL)
	r.Stat.Encode(e)
}

// Decode implements Record.
func (r *GetACLResponse) Decode(d *Decoder) {
	r.ACL = d.ACLs()
	r.Stat.Decode(d)
}

// GetChildrenResponse answers OpGetChildren.
type GetChildrenResponse struct{ Children []string }

// Encode implements Record.
func (r *GetChildrenResponse) Encode(e *Encoder) { e.Strings(r.Children) }

// Decode implements Record.
func (r *GetChildrenResponse) Decode(d *Decoder) { r.Children = d.Strings() }

// GetChildren2Response answers OpGetChildren2.
type GetChildren2Response struct {
	Children []string
	Stat     Stat
}

// Encode implements Record.
func (r *GetChildren2Response) Encode(e *Encoder) {
	e.Strings(r.Children)
	r.Stat.Encode(e)
}

// Decode implements Record.
func (r *GetChildren2Response) Decode(d *Decoder) {
	r.Children = d.Strings()
	r.Stat.Decode(d)
}

// GetEphemeralsResponse answers OpGetEphemerals.
type GetEphemeralsResponse struct{ Paths []string }

// Encode implements Record.
func (r *GetEphemeralsResponse) Encode(e *Encoder) { e.Strings(r.Paths) }

// Decode implements Record.
func (r *GetEphemeralsResponse) Decode(d *Decoder) { r.Paths = d.Strings() }

// GetAllChildrenNumberResponse answers OpGetAllChildrenNumber.
type GetAllChildrenNumberResponse struct{ Total int32 }

// Encode implements Record.
func (r *GetAllChildrenNumberResponse) Encode(e *Encoder) { e.Int32(r.Total) }

// Decode implements Record.
func (r *GetAllChildrenNumberResponse) Decode(d *Decoder) { r.Total = d.Int32() }

// AuthRequest is the body of OpAuth.
type AuthRequest struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// Encode implements Record.
func (r *AuthRequest) Encode(e *Encoder) {
	e.Int32(r.Type)
	e.String(r.Scheme)
	e.Bytes(r.Auth)
}

// Decode implements Record.
func (r *AuthRequest) Decode(d *Decoder) {
	r.Type = d.Int32()
	r.Scheme = d.String()
	r.Auth = d.Bytes()
}

// SetWatchesRequest is the body of OpSetWatches.
type SetWatchesRequest struct {
	RelativeZxid int64
	Data         []string
	Exist        []string
	Child        []string
}

// Encode implements Record.
func (r *SetWatchesRequest) Encode(e *Encoder) {
	e.Int64(r.RelativeZxid)
	e.Strings(r.Data)
	e.Strings(r.Exist)
	e.Strings(r.Child)
}

// Decode implements Record.
func (r *SetWatchesRequest) Decode(d *Decoder) {
	r.RelativeZxid = d.Int64()
	r.Data = d.Strings()
	r.Exist = d.Strings()
	r.Child = d.Strings()
}

// SetWatches2Request is the body of OpSetWatches2.
type SetWatches2Request struct {
	SetWatchesRequest
	Persistent          []string
	PersistentRecursive []string
}

// Encode implements Record.
func (r *SetWatches2Request) Encode(e *Encoder) {
	r.SetWatchesRequest.Encode(e)
	e.Strings(r.Persistent)
	e.Strings(r.PersistentRecursive)
}

// Decode implements Record.
func (r *SetWatches2Request) Decode(d *Decoder) {
	r.SetWatchesRequest.Decode(d)
	r.Persistent = d.Strings()
	r.PersistentRecursive = d.Strings()
}

// AddWatchRequest is the body of OpAddWatch.
type AddWatchRequest struct {
	Path string
	Mode int32
}

// Encode implements Record.
func (r *AddWatchRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int32(r.Mode)
}

// Decode implements Record.
func (r *AddWatchRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Mode = d.Int32()
}

// WatchesRequest is the body of OpCheckWatches and OpRemoveWatches.
type WatchesRequest struct {
	Path string
	Type int32
}

// Encode implements Record.
func (r *WatchesRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int32(r.Type)
}

// Decode implements Record.
func (r *WatchesRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Type = d.Int32()
}

// ReconfigRequest is the body of OpReconfig.
type ReconfigRequest struct {
	Joining    string
	Leaving    string
	NewMembers string
	ConfigID   int64
}

// Encode implements Record.
func (r *ReconfigRequest) Encode(e *Encoder) {
	e.String(r.Joining)
	e.String(r.Leaving)
	e.String(r.NewMembers)
	e.Int64(r.ConfigID)
}

// Decode implements Record.
func (r *ReconfigRequest) Decode(d *Decoder) {
	r.Joining = d.String()
	r.Leaving = d.String()
	r.NewMembers = d.String()
	r.ConfigID = d.Int64()
}

// ClientInfo is one identity of a session.
type ClientInfo struct {
	Scheme string
	User   string
}

// WhoAmIResponse answers OpWhoAmI.
type WhoAmIResponse struct{ Clients []ClientInfo }

// Encode implements Record.
func (r *WhoAmIResponse) Encode(e *Encoder) {
	e.Int32(int32(len(r.Clients)))
	for _, c := range r.Clients {
		e.String(c.Scheme)
		e.String(c.User)
	}
}

// Decode implements Record.
func (r *WhoAmIResponse) Decode(d *Decoder) {
	r.Clients = nil
	for range max(0, d.count(8)) {
		r.Clients = append(r.Clients, ClientInfo{Scheme: d.String(), User: d.String()})
	}
}

// ErrorResponse answers OpAddWatch.
type ErrorResponse struct{ Code Code }

// Encode implements Record.
func (r *ErrorResponse) Encode(e *Encoder) { e.Int32(int32(r.Code)) }

// Decode implements Record.
func (r *ErrorResponse) Decode(d *Decoder) { r.Code = Code(d.Int32()) }

// SASLRequest is the body of OpSASL.
type SASLRequest struct{ Token []byte }

// Encode implements Record.
func (r *SASLRequest) Encode(e *Encoder) { e.Bytes(r.Token) }

// Decode implements Record.
func (r *SASLRequest) Decode(d *Decoder) { r.Token = d.Bytes() }

// SASLResponse answers OpSASL.
type SASLResponse = SASLRequest

// Empty is the body of requests and replies that have none.
type Empty struct{}

// Encode implements Record.
func (Empty) Encode(*Encoder) {}

// Decode implements Record.
func (Empty) Decode(*Decoder) {}
