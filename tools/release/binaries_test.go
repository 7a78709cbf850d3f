package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSums(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"b": "abc", "a": "", sumsFile: "old"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const want = `e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a
ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b
`
	if got, err := sumsOf(dir); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := same(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err == nil {
		t.Error("two files are not the same")
	}
}

func TestBinaryName(t *testing.T) {
	for system, want := range map[string]string{"linux/arm64": "zkserver_v0.2.0_linux_arm64", "windows/amd64": "zkserver_v0.2.0_windows_amd64.exe"} {
		if got := binaryName("testing/cmd/zkserver", "v0.2.0", system); got != want {
			t.Errorf("%q, and not %q", got, want)
		}
	}
}
