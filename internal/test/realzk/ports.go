//go:build unix

package realzk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
)

const (
	loopback       = "127.0.0.1"
	lowestPort     = 20000
	ephemeralStart = 32768 // Linux's default
	blockSize      = 1 + 4*largestServers
)

// memberPorts are the ports that one server binds.
type memberPorts struct {
	client, quorum, election, secure int
}

// portBlock is a range of ports that no other ensemble of this harness takes, in
// this process or another, while it is open. Its first port is bound as long as it
// is open: that is the claim, and it ends with the process. A look at which ports
// are bound would not do, since some stay unbound for long, such as a killed
// member's.
type portBlock struct {
	holder  net.Listener
	members []memberPorts
}

func (b *portBlock) close() error {
	return b.holder.Close()
}

// findPorts claims a block of which no port is bound. The ports lie below
// those the system gives to outgoing connections, any of which could otherwise
// take the port of a server that is being restarted.
func findPorts(members int) (*portBlock, error) {
	highest := ephemeralStart
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var low int
		if _, err := fmt.Sscan(string(text), &low); err == nil && low > lowestPort+blockSize {
			highest = low
		}
	}
	blocks := (highest - lowestPort) / blockSize
	var last error
	for i, first := 0, rand.IntN(blocks); i < blocks; i++ {
		block, err := claimBlock(lowestPort+(first+i)%blocks*blockSize, members)
		if err == nil {
			return block, nil
		}
		last = err
	}
	return nil, fmt.Errorf("realzk: no free ports: %w", last)
}

func claimBlock(port, members int) (_ *portBlock, err error) {
	claim, err := listen(port)
	if err != nil {
		return nil, err
	}
	block := &portBlock{holder: claim}
	var probes []net.Listener
	defer func() {
		for _, ln := range probes {
			err = errors.Join(err, ln.Close())
		}
		if err != nil {
			err = errors.Join(err, block.close())
		}
	}()
	for range members {
		block.members = append(block.members, memberPorts{port + 1, port + 2, port + 3, port + 4})
		for range 4 {
			port++
			ln, err := listen(port)
			if err != nil {
				return nil, err
			}
			probes = append(probes, ln)
		}
	}
	return block, nil
}

func listen(port int) (net.Listener, error) {
	return net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(loopback), Port: port})
}

func hostPort(port int) string {
	return fmt.Sprintf("%s:%d", loopback, port)
}
