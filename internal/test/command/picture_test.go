//go:build unix

package command

import (
	"context"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

var update = flag.Bool("update", false, "record docs/pictures/terminal.svg anew")

// TestTerminal finds a stuck lock at a terminal, and with -update draws what it showed.
func TestTerminal(t *testing.T) {
	if !*update {
		t.Skip("-update records it")
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/paddock")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	srv := zktest.Start(t)
	hold := func(ago time.Duration, participant string, acquire func(context.Context, *framework.Client) error, wait string, n int) {
		srv.MoveClock(-ago)
		defer srv.MoveClock(ago)
		client, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), DefaultData: []byte(participant)})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			defer close(ended)
			_ = acquire(ctx, client)
		}()
		t.Cleanup(func() { cancel(); <-ended; _ = client.Close() })
		if err := srv.WaitChildren(t.Context(), wait, n); err != nil {
			t.Fatal(err)
		}
	}
	mutex := func(path string) func(context.Context, *framework.Client) error {
		return func(ctx context.Context, client *framework.Client) error {
			_, err := locks.NewInterProcessMutex(client, path).Acquire(ctx)
			return err
		}
	}
	hold(4*time.Hour+12*time.Minute, "orders-1 pid 4711", mutex("/shop/orders/7"), "/shop/orders/7", 1)
	hold(11*time.Minute, "orders-2 pid 4712", mutex("/shop/orders/7"), "/shop/orders/7", 2)
	hold(31*time.Minute, "mailer-7d4f", func(ctx context.Context, client *framework.Client) error {
		_, err := leader.NewLatch(client, "/shop/leaders/mailer", leader.ID("mailer-7d4f")).Await(ctx)
		return err
	}, "/shop/leaders/mailer", 1)
	hold(3*time.Minute, "prices-2 pid 9", func(ctx context.Context, client *framework.Client) error {
		_, err := locks.NewInterProcessReadWriteLock(client, "/shop/prices").WriteLock().Acquire(ctx)
		return err
	}, "/shop/prices", 1)
	hold(4*time.Second, "prices-3 pid 12", func(ctx context.Context, client *framework.Client) error {
		_, err := locks.NewInterProcessReadWriteLock(client, "/shop/prices").ReadLock().Acquire(ctx)
		return err
	}, "/shop/prices", 2)

	var shown []string
	for _, c := range []struct{ typed, run string }{
		{"paddock locks --older 1m", "paddock locks --older 1m"},
		{"paddock lock /shop/orders/7 -- ./import-orders.sh", "timeout -s INT 3 paddock lock /shop/orders/7 -- true"},
		{"paddock break --yes /shop/orders/7", "paddock break --yes /shop/orders/7"},
	} {
		cmd := exec.CommandContext(t.Context(), "script", "--quiet", "--command", "stty cols 100; "+c.run, "/dev/null")
		cmd.Env = append(os.Environ(), "PADDOCK_SERVERS="+srv.ConnectString(), "PATH="+bin+":"+os.Getenv("PATH"), "TERM=xterm")
		out, err := cmd.Output()
		if err != nil && len(out) == 0 {
			t.Fatal(err)
		}
		shown = append(shown, "\x1b[1m$ "+c.typed+"\x1b[0m\n"+strings.ReplaceAll(string(out), "\r\n", "\n"))
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "pictures", "terminal.svg"), []byte(draw(shown)), 0o644); err != nil { //nolint:gosec // for everybody
		t.Fatal(err)
	}
}

// colour is a sequence that a terminal obeys.
var colour = regexp.MustCompile(`\x1b\[([0-9;]*)[A-Za-z]`)

// draw makes a picture of what a terminal has shown.
func draw(commands []string) string {
	const line, width = 19, 950
	classes := map[string]string{"1": "bold", "31": "red", "33": "yellow"}
	var body strings.Builder
	y := line
	for _, text := range commands {
		for row := range strings.Lines(text) {
			class, at := "", 0
			fmt.Fprintf(&body, `<text x="14" y="%d">`, y+10)
			row = strings.TrimRight(row, "\n")
			for _, m := range append(colour.FindAllStringSubmatchIndex(row, -1), []int{len(row), len(row), 0, 0}) {
				if m[0] > at {
					fmt.Fprintf(&body, `<tspan class="%s">%s</tspan>`, class, html.EscapeString(row[at:m[0]]))
				}
				class, at = classes[row[m[2]:m[3]]], m[1]
			}
			body.WriteString("</text>\n")
			y += line
		}
		y += line / 2
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" xml:space="preserve" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="13">
<style>
rect{fill:#f6f8fa;stroke:#d0d7de} text{fill:#1f2328;white-space:pre} .bold{font-weight:bold} .red{fill:#cf222e} .yellow{fill:#9a6700}
@media (prefers-color-scheme:dark){rect{fill:#0d1117;stroke:#30363d} text{fill:#e6edf3} .red{fill:#ff7b72} .yellow{fill:#e3b341}}
</style>
<rect x=".5" y=".5" width="%d" height="%d" rx="8"/>
%s</svg>
`, width, y+8, width-1, y+7, body.String())
}
