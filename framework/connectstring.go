package framework

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// defaultPort is what a server without one listens on.
const defaultPort = "2181"

// parseConnectString splits a connection string into host:port pairs and the
// chroot, which is "" if there is none.
//
// Source: ZooKeeper's ConnectStringParser, which leaves out empty elements and the
// spaces around them. Differs: a server that is named twice counts once, and a chroot
// that ends in a space is refused.
func parseConnectString(s string) (servers []string, chroot string, err error) {
	if strings.TrimSpace(s) == "" {
		return nil, "", errors.New("is empty: it lists host:port pairs, separated by commas, and may end in a chroot")
	}
	if strings.Contains(s, "://") { // not shown: there may be a password behind it
		return nil, "", errors.New("has a scheme: it is host:port pairs alone, as in zk1:2181,zk2:2181/app")
	}
	hosts := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		hosts, chroot = s[:i], s[i:]
	}
	if strings.Contains(hosts, "@") {
		// Not shown: it may be a password.
		return nil, "", errors.New("has an @ among its servers: credentials belong in Auth")
	}
	if strings.Contains(hosts, ";") {
		return nil, "", errors.New("has a semicolon: servers are separated by commas, as in zk1:2181,zk2:2181")
	}
	for _, entry := range strings.Split(hosts, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		server, err := parseServer(entry)
		if err != nil {
			return nil, "", fmt.Errorf("server %q: %w", entry, err)
		}
		if !slices.Contains(servers, server) {
			servers = append(servers, server)
		}
	}
	switch {
	case len(servers) == 0:
		return nil, "", errors.New("has no server: it lists host:port pairs, separated by commas, and may end in a chroot")
	case chroot == "/":
		chroot = ""
	case chroot != "":
		if err := ValidatePath(chroot); err != nil {
			return nil, "", fmt.Errorf("chroot: %w", err)
		}
		if strings.TrimSpace(chroot) != chroot {
			return nil, "", fmt.Errorf("chroot %s ends in a space, and other clients would take that for a part of its name", shown(chroot))
		}
		if strings.Contains(chroot, ",") {
			return nil, "", fmt.Errorf("chroot %s has a comma: the chroot is written once, behind the last server, as in a:2181,b:2181/app", shown(chroot))
		}
	}
	return servers, chroot, nil
}

func parseServer(entry string) (string, error) {
	switch {
	case strings.ContainsAny(entry, "${}"), strings.HasPrefix(entry, "%") && strings.HasSuffix(entry, "%"):
		return "", errors.New("is a variable that nobody has replaced by its value")
	case strings.ContainsFunc(entry, notInHosts):
		return "", errors.New("has a character that no host name has (servers are separated by commas)")
	case strings.Count(entry, ":") > 1 && entry[0] != '[':
		return "", errors.New("an IPv6 address must stand in brackets, as in [::1]:2181")
	case entry[0] == '[' && strings.HasSuffix(entry, "]"), !strings.Contains(entry, ":"):
		entry += ":" + defaultPort
	}
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		return "", errors.New("is not host:port")
	}
	if host == "" {
		return "", errors.New("has no host")
	}
	if entry[0] == '[' && net.ParseIP(strings.SplitN(host, "%", 2)[0]) == nil {
		return "", errors.New("has no IPv6 address in its brackets")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

// notInHosts is whether neither a name nor an address nor a port has a character.
// Names may have letters of any alphabet: a resolver of the user's may know them.
func notInHosts(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune("\"#&'()*+<=>?\\^`|~!", r)
}
