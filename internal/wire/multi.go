package wire

// MultiOp is one operation of OpMulti or OpMultiRead.
type MultiOp struct {
	Op Op
	// Request is the body that the operation has on its own.
	Request Record
}

// MultiRequest is the body of OpMulti and OpMultiRead.
type MultiRequest struct{ Ops []MultiOp }

// multiHeader stands before each operation and each result, and ends the list.
type multiHeader struct {
	op   Op
	done bool
	code Code
}

var multiEnd = multiHeader{op: -1, done: true, code: -1}

func (h *multiHeader) encode(e *Encoder) {
	e.Int32(int32(h.op))
	e.Bool(h.done)
	e.Int32(int32(h.code))
}

func (h *multiHeader) decode(d *Decoder) {
	h.op = Op(d.Int32())
	h.done = d.Bool()
	h.code = Code(d.Int32())
}

// Encode implements Record.
func (r *MultiRequest) Encode(e *Encoder) {
	for _, op := range r.Ops {
		h := multiHeader{op: op.Op, code: -1}
		h.encode(e)
		op.Request.Encode(e)
	}
	multiEnd.encode(e)
}

// Decode implements Record. An operation that cannot stand in a multi is a
// mistake; those before a mistake are kept.
func (r *MultiRequest) Decode(d *Decoder) {
	r.Ops = nil
	for {
		var h multiHeader
		h.decode(d)
		if d.Err() != nil || h.done {
			return
		}
		req := newMultiRequest(h.op)
		if req == nil {
			d.Fail("%v inside multi", h.op)
			return
		}
		if req.Decode(d); d.Err() != nil {
			return
		}
		r.Ops = append(r.Ops, MultiOp{Op: h.op, Request: req})
	}
}

func newMultiRequest(op Op) Record {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return new(CreateRequest)
	case OpCreateTTL:
		return new(CreateTTLRequest)
	case OpDelete, OpCheck:
		return new(PathVersionRequest)
	case OpSetData:
		return new(SetDataRequest)
	case OpGetData, OpGetChildren:
		return new(PathWatchRequest)
	}
	return nil
}

// MultiResult is the outcome of one operation of a multi. An operation that
// was refused has Op OpError and its Code; what is set otherwise follows from Op.
//
// On the wire, ClickHouse Keeper leaves a refused operation of OpMultiRead its own Op, with
// no more than the Code. Encode writes a result with both so, and Decode makes it OpError.
//
// Source: ClickHouse ZooKeeperMultiResponse.writeImpl.
type MultiResult struct {
	Op       Op
	Code     Code
	Path     string // after OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL
	Stat     Stat   // after OpCreate2, OpCreateContainer, OpCreateTTL, OpSetData, OpGetData
	Data     []byte // after OpGetData
	Children Names  // after OpGetChildren
}

// Refused tells the operation that stopped a transaction from those that were
// undone with it.
func (r *MultiResult) Refused() bool {
	return r.Op == OpError && r.Code != CodeOK && r.Code != CodeRuntimeInconsistency
}

// MultiResponse answers OpMulti and OpMultiRead.
type MultiResponse struct{ Results []MultiResult }

// Encode implements Record.
func (r *MultiResponse) Encode(e *Encoder) {
	for i := range r.Results {
		res := &r.Results[i]
		h := multiHeader{op: res.Op, code: res.Code}
		h.encode(e)
		if res.Code != CodeOK && res.Op != OpError {
			continue
		}
		switch res.Op {
		case OpCreate:
			e.String(res.Path)
		case OpCreate2, OpCreateContainer, OpCreateTTL:
			e.String(res.Path)
			res.Stat.Encode(e)
		case OpSetData:
			res.Stat.Encode(e)
		case OpGetData:
			e.Bytes(res.Data)
			res.Stat.Encode(e)
		case OpGetChildren:
			res.Children.Encode(e)
		case OpError:
			e.Int32(int32(res.Code))
		}
	}
	multiEnd.encode(e)
}

// Decode implements Record. It uses the memory of Results.
func (r *MultiResponse) Decode(d *Decoder) {
	r.Results = r.Results[:0]
	for {
		var h multiHeader
		h.decode(d)
		if d.Err() != nil || h.done {
			return
		}
		res := MultiResult{Op: h.op, Code: h.code}
		if h.code != CodeOK && h.op != OpError {
			r.Results = append(r.Results, MultiResult{Op: OpError, Code: h.code})
			continue
		}
		switch h.op {
		case OpCreate:
			res.Path = d.String()
		case OpCreate2, OpCreateContainer, OpCreateTTL:
			res.Path = d.String()
			res.Stat.Decode(d)
		case OpSetData:
			res.Stat.Decode(d)
		case OpGetData:
			res.Data = d.Bytes()
			res.Stat.Decode(d)
		case OpGetChildren:
			res.Children.Decode(d)
		case OpDelete, OpCheck:
		case OpError:
			res.Code = Code(d.Int32())
		default:
			d.Fail("%v in a multi's results", h.op)
			return
		}
		r.Results = append(r.Results, res)
	}
}
