package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	dir := t.TempDir()
	samples, page := filepath.Join(dir, "samples.txt"), filepath.Join(dir, "bench.md")
	for file, text := range map[string]string{
		samples: `goos: linux
Unit hand-offs/s better=higher
server: ZooKeeper
group: uncontended
BenchmarkLock/of=raw_create+delete 1 400000 ns/op 1e+06 p99-ns/op
BenchmarkLock/of=raw_create+delete 1 500000 ns/op 1e+06 p99-ns/op
BenchmarkLock/of=raw_create+delete 1 410000 ns/op 1e+06 p99-ns/op
BenchmarkLock/of=mutex 1 440000 ns/op 2e+06 p99-ns/op
BenchmarkLock/of=mutex 1 500000 ns/op 2e+06 p99-ns/op
BenchmarkLock/of=mutex 1 410000 ns/op 2e+06 p99-ns/op
server: ZooKeeper
group: hand-offs, own sessions
BenchmarkLock/of=zk.Lock/clients=8 1 2000 hand-offs/s
BenchmarkLock/of=mutex/clients=8 1 3141.5 hand-offs/s
server: ZooKeeper
group: memory
BenchmarkLock/of=client 1 3119000 B
`,
		page: "# Measured\n\n" + marker + "old\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "pictures"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := run(page, []string{samples}); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Measured\n\n" + marker + "\n### ZooKeeper: uncontended\n\n<picture>",
		"| raw create+delete | 410 us | 400 to 500 us | | | 1.00 ms |\n| mutex | 440 us | 410 to 500 us | 1.00 | 1.00 to 1.10 | 2.00 ms |\n",
		"| mutex, 8 clients | 3,140 /s | 3,140 to 3,140 /s | 1.57 | 1.57 to 1.57 |\n",
		"### ZooKeeper: memory\n\n| | median | lowest to highest round |\n|---|--:|--:|\n| client | 3,119,000 bytes | 3,119,000 to 3,119,000 bytes |\n",
	} {
		if !strings.Contains(string(made), want) {
			t.Errorf("not in the page: %s\n%s", want, made)
		}
	}
	for _, name := range []string{"uncontended-light", "uncontended-dark", "hand-offs-own-sessions-dark"} {
		svg, err := os.ReadFile(filepath.Join(dir, "pictures", "bench-zookeeper-"+name+".svg"))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(svg), ">mutex") {
			t.Errorf("%s does not name the mutex:\n%s", name, svg)
		}
	}
}
