// Package wire is ZooKeeper's client protocol: frames, headers, and the
// requests and replies inside them, to be written and read by a client as well
// as by a server.
//
// Everything on the wire is big endian. A frame is a 4-byte length and that
// many bytes. The first frame each way opens the session (ConnectRequest,
// ConnectResponse); each later one is a header (RequestHeader, ReplyHeader)
// and a body. A record encodes itself with an Encoder, which only appends, and
// decodes itself with a Decoder, which remembers the first mistake, so that
// neither needs an error check per field.
//
// Source: ZooKeeper 3.8, zookeeper-jute (zookeeper.jute, BinaryInputArchive).
package wire
