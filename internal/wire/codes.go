package wire

import "strconv"

// Op is a request's type.
type Op int32

// The requests that a client may send.
const (
	OpNotification         Op = 0
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpCreateSession        Op = -10
	OpCloseSession         Op = -11
	OpError                Op = -1
)

var opNames = map[Op]string{
	OpNotification: "notification", OpCreate: "create", OpDelete: "delete", OpExists: "exists",
	OpGetData: "getData", OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL",
	OpGetChildren: "getChildren", OpSync: "sync", OpPing: "ping", OpGetChildren2: "getChildren2",
	OpCheck: "check", OpMulti: "multi", OpCreate2: "create2", OpReconfig: "reconfig",
	OpCheckWatches: "checkWatches", OpRemoveWatches: "removeWatches",
	OpCreateContainer: "createContainer", OpDeleteContainer: "deleteContainer", OpCreateTTL: "createTTL",
	OpMultiRead: "multiRead", OpAuth: "auth", OpSetWatches: "setWatches", OpSASL: "sasl",
	OpGetEphemerals: "getEphemerals", OpGetAllChildrenNumber: "getAllChildrenNumber",
	OpSetWatches2: "setWatches2", OpAddWatch: "addWatch", OpWhoAmI: "whoAmI",
	OpCreateSession: "createSession", OpCloseSession: "closeSession", OpError: "error",
}

// String returns the protocol's name for the request, such as "getData".
func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return "op " + strconv.Itoa(int(o))
}

// The transaction ids of frames that do not answer one of the client's numbered requests.
const (
	XidNotification int32 = -1
	XidPing         int32 = -2
	XidAuth         int32 = -4
	XidSetWatches   int32 = -8
)

// Code is the outcome of a request, 0 for success.
type Code int32

// The codes that a server may answer with.
const (
	CodeOK                      Code = 0
	CodeSystemError             Code = -1
	CodeRuntimeInconsistency    Code = -2
	CodeDataInconsistency       Code = -3
	CodeConnectionLoss          Code = -4
	CodeMarshallingError        Code = -5
	CodeUnimplemented           Code = -6
	CodeOperationTimeout        Code = -7
	CodeBadArguments            Code = -8
	CodeNewConfigNoQuorum       Code = -13
	CodeReconfigInProgress      Code = -14
	CodeAPIError                Code = -100
	CodeNoNode                  Code = -101
	CodeNoAuth                  Code = -102
	CodeBadVersion              Code = -103
	CodeNoChildrenForEphemerals Code = -108
	CodeNodeExists              Code = -110
	CodeNotEmpty                Code = -111
	CodeSessionExpired          Code = -112
	CodeInvalidCallback         Code = -113
	CodeInvalidACL              Code = -114
	CodeAuthFailed              Code = -115
	CodeSessionMoved            Code = -118
	CodeNotReadOnly             Code = -119
	CodeEphemeralOnLocalSession Code = -120
	CodeNoWatcher               Code = -121
	CodeRequestTimeout          Code = -122
	CodeReconfigDisabled        Code = -123
	CodeSessionClosedNeedsSASL  Code = -124
	CodeQuotaExceeded           Code = -125
	CodeThrottledOp             Code = -127
)

var codeNames = map[Code]string{
	CodeOK: "ok", CodeSystemError: "system error", CodeRuntimeInconsistency: "runtime inconsistency",
	CodeDataInconsistency: "data inconsistency", CodeConnectionLoss: "connection loss",
	CodeMarshallingError: "marshalling error", CodeUnimplemented: "unimplemented",
	CodeOperationTimeout: "operation timeout", CodeBadArguments: "bad arguments",
	CodeNewConfigNoQuorum: "new config has no quorum", CodeReconfigInProgress: "reconfig in progress",
	CodeAPIError: "API error", CodeNoNode: "no node", CodeNoAuth: "no auth", CodeBadVersion: "bad version",
	CodeNoChildrenForEphemerals: "no children for ephemerals", CodeNodeExists: "node exists",
	CodeNotEmpty: "not empty", CodeSessionExpired: "session expired", CodeInvalidCallback: "invalid callback",
	CodeInvalidACL: "invalid ACL", CodeAuthFailed: "auth failed", CodeSessionMoved: "session moved",
	CodeNotReadOnly: "server is read-only", CodeEphemeralOnLocalSession: "ephemeral on local session",
	CodeNoWatcher: "no watcher", CodeRequestTimeout: "request timeout", CodeReconfigDisabled: "reconfig disabled",
	CodeSessionClosedNeedsSASL: "session closed, SASL required", CodeQuotaExceeded: "quota exceeded",
	CodeThrottledOp: "throttled",
}

// String returns the code in words.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return "code " + strconv.Itoa(int(c))
}

// EventType is what happened to a watched node.
type EventType int32

// The events of a notification.
const (
	EventNodeCreated            EventType = 1
	EventNodeDeleted            EventType = 2
	EventNodeDataChanged        EventType = 3
	EventNodeChildrenChanged    EventType = 4
	EventDataWatchRemoved       EventType = 5
	EventChildWatchRemoved      EventType = 6
	EventPersistentWatchRemoved EventType = 7
)

var eventNames = map[EventType]string{
	EventNodeCreated: "created", EventNodeDeleted: "deleted", EventNodeDataChanged: "dataChanged",
	EventNodeChildrenChanged: "childrenChanged", EventDataWatchRemoved: "dataWatchRemoved",
	EventChildWatchRemoved: "childWatchRemoved", EventPersistentWatchRemoved: "persistentWatchRemoved",
}

// String returns the event in one word.
func (e EventType) String() string {
	if name, ok := eventNames[e]; ok {
		return name
	}
	return "event " + strconv.Itoa(int(e))
}

// StateSyncConnected is the state that a server puts into notifications.
const StateSyncConnected int32 = 3

// Flags are a create request's mode.
type Flags int32

// The modes of a create request.
const (
	FlagPersistent            Flags = 0
	FlagEphemeral             Flags = 1
	FlagSequence              Flags = 2
	FlagEphemeralSequence     Flags = 3
	FlagContainer             Flags = 4
	FlagPersistentTTL         Flags = 5
	FlagPersistentSequenceTTL Flags = 6
)

// The kinds of watch that OpCheckWatches and OpRemoveWatches speak of.
const (
	WatchChildren            int32 = 1
	WatchData                int32 = 2
	WatchAny                 int32 = 3
	WatchPersistent          int32 = 4
	WatchPersistentRecursive int32 = 5
)

// The modes of OpAddWatch.
const (
	AddWatchPersistent          int32 = 0
	AddWatchPersistentRecursive int32 = 1
)

// The rights of an ACL, to be or-ed.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)
