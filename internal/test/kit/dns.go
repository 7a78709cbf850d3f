package kit

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
)

// Resolver asks a DNS that knows the servers of one service by their names: their SRV
// records, whatever name is asked for, and the IPv4 address of each name.
func Resolver(servers func() map[string]netip.AddrPort) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asker, server := net.Pipe()
		go answerDNS(server, servers)
		return asker, nil
	}}
}

// answerDNS answers one question, as a DNS server does over TCP.
func answerDNS(c net.Conn, servers func() map[string]netip.AddrPort) {
	defer func() { _ = c.Close() }()
	var size [2]byte
	_, err := io.ReadFull(c, size[:])
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err2 := io.ReadFull(c, query); err != nil || err2 != nil {
		return
	}
	const head, typeA, typeSRV = 12, 1, 33
	end := head // of the name
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	var answers [][]byte
	asked := binary.BigEndian.Uint16(query[end+1:])
	for name, addr := range servers() {
		switch {
		case asked == typeA && string(query[head+1:end]) == name:
			ip := addr.Addr().As4()
			answers = append(answers, ip[:])
		case asked == typeSRV:
			srv := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 0}, addr.Port()) // behind priority and weight
			srv = append(append(srv, byte(len(name))), name...)
			answers = append(answers, append(srv, 0))
		}
	}
	reply := binary.BigEndian.AppendUint16(nil, 0) // its size
	reply = append(reply, query[:2]...)
	for _, field := range []int{0x8180, 1, len(answers), 0, 0} { // a response without an error
		reply = binary.BigEndian.AppendUint16(reply, uint16(field))
	}
	reply = append(reply, query[head:end+5]...)
	for _, a := range answers {
		reply = binary.BigEndian.AppendUint16(reply, 0xc000+head) // the name in the question
		reply = append(reply, query[end+1:end+5]...)              // its type and class
		reply = binary.BigEndian.AppendUint32(reply, 0)           // not to be kept
		reply = append(binary.BigEndian.AppendUint16(reply, uint16(len(a))), a...)
	}
	binary.BigEndian.PutUint16(reply, uint16(len(reply)-2))
	_, _ = c.Write(reply)
}
