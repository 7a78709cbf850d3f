package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verb is one thing that the command does.
type verb struct {
	name, args, short string
	most              int // how many arguments it takes; negative for any number
	least             int
	flags             []string // that only some verbs take
	run               func(ctx context.Context, inv *invocation) error
}

// invocation is one run's verb, with its flags and arguments.
type invocation struct {
	verb *verb
	args []string
	sys  system

	servers, namespace      string
	auths                   values
	authFile                string
	tls                     bool
	tlsCA, tlsCert, tlsKey  string
	tlsServerName           string
	sessionTimeout, timeout time.Duration
	limited                 bool // --timeout was given
	json                    bool
	semaphore, depth        int
	wait, grace             time.Duration
	id                      string
	read, write, try        bool
	split                   int // how many arguments came before "--", negative without one
	all, long, yes, help    bool
	older                   time.Duration
	live                    bool
}

// values is a flag that may be given several times.
type values []string

// String implements flag.Value.
func (v *values) String() string { return "" }

// Set implements flag.Value.
func (v *values) Set(s string) error {
	*v = append(*v, s)
	return nil
}

const (
	defaultTimeout = 10 * time.Second
	unset          = time.Duration(-1 << 63) // of a flag that was not given
	anyDepth       = -1
)

// flagSet has all flags. Those that belong to some verbs only are checked later, so
// that every flag may stand before its verb.
func (inv *invocation) flagSet(getenv func(string) string) *flag.FlagSet {
	f := flag.NewFlagSet("paddock", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&inv.servers, "servers", getenv("PADDOCK_SERVERS"), "connect to `host:port,...`, which may end in a chroot (PADDOCK_SERVERS)")
	f.StringVar(&inv.namespace, "namespace", getenv("PADDOCK_NAMESPACE"), "put this `path` before every path (PADDOCK_NAMESPACE)")
	f.Var(&inv.auths, "auth", "present a credential, `scheme:data`, such as digest:user:password; may be given several times. Other users of this machine can read it: PADDOCK_AUTH and --auth-file are not shown to them")
	f.StringVar(&inv.authFile, "auth-file", getenv("PADDOCK_AUTH_FILE"), "present the credentials in this `file`, one a line (PADDOCK_AUTH_FILE)")
	f.BoolVar(&inv.tls, "tls", false, "speak TLS, with the system's certificate authorities (PADDOCK_TLS=1)")
	f.StringVar(&inv.tlsCA, "tls-ca", getenv("PADDOCK_TLS_CA"), "speak TLS and trust the authorities in this PEM `file` (PADDOCK_TLS_CA)")
	f.StringVar(&inv.tlsCert, "tls-cert", getenv("PADDOCK_TLS_CERT"), "present the certificate in this PEM `file` (PADDOCK_TLS_CERT)")
	f.StringVar(&inv.tlsKey, "tls-key", getenv("PADDOCK_TLS_KEY"), "its key, a PEM `file` (PADDOCK_TLS_KEY)")
	f.StringVar(&inv.tlsServerName, "tls-server-name", getenv("PADDOCK_TLS_SERVER_NAME"), "expect this `name` in the servers' certificates (PADDOCK_TLS_SERVER_NAME)")
	span := func(to *time.Duration, byDefault time.Duration, name, usage string) {
		*to = byDefault
		f.Func(name, usage, func(text string) (err error) {
			if *to, err = time.ParseDuration(text); err != nil {
				return errors.New("write a number and its unit, such as 3s or 1m30s")
			}
			return nil
		})
	}
	number := func(to *int, byDefault int, name, usage string) {
		*to = byDefault
		f.Func(name, usage, func(text string) (err error) {
			if *to, err = strconv.Atoi(text); err != nil {
				return errors.New("write a whole number")
			}
			return nil
		})
	}
	span(&inv.sessionTimeout, 0, "session-timeout", "ask the servers for this session timeout, a `duration`; 15s by default")
	span(&inv.timeout, defaultTimeout, "timeout", "how long the command may take, a `duration`; 10s by default. For watch and lock the default is for connecting only, and what a command does under a lock never counts")
	f.BoolVar(&inv.json, "json", false, "print JSON")
	f.BoolVar(&inv.help, "help", false, "print help")
	f.BoolVar(&inv.help, "h", false, "print help")
	number(&inv.semaphore, 0, "semaphore", "the semaphore has `n` leases")
	number(&inv.depth, anyDepth, "depth", "go `n` levels down; any number by default")
	f.BoolVar(&inv.all, "all", false, "for tree, show the nodes of participants too; for break, delete the nodes of those who wait as well")
	f.BoolVar(&inv.long, "long", false, "show version, size, owner and number of children")
	span(&inv.older, 0, "older", "show locks that somebody has had, or has waited for, for this `duration` or longer")
	f.BoolVar(&inv.live, "watch", false, "show the table anew every two seconds, until interrupted; on a terminal only")
	f.BoolVar(&inv.yes, "yes", false, "do not ask")
	f.BoolVar(&inv.read, "read", false, "take the read side of a read/write lock")
	f.BoolVar(&inv.write, "write", false, "take the write side of a read/write lock")
	f.BoolVar(&inv.try, "try", false, "do not wait for others")
	span(&inv.wait, unset, "wait", "wait for a `duration` at most, and with 0s not at all; without it, for as long as it takes")
	span(&inv.grace, unset, "grace", "the command has this `time` between SIGTERM and SIGKILL; 2s by default, or less if the session timeout is short")
	f.StringVar(&inv.id, "id", "", "what others see of the holder, as `text`; host and process id by default")
	return f
}

// common are the flags of every verb.
var common = []string{
	"servers", "namespace", "auth", "auth-file", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name",
	"session-timeout", "timeout", "json", "help", "h",
}

// parse reads the arguments. Flags may stand before and behind the verb and its
// arguments; behind "--" there are none.
func parse(args []string, getenv func(string) string) (*invocation, error) {
	inv := new(invocation)
	f := inv.flagSet(getenv)
	inv.split = -1
	var words []string
	var wrong error
	for wrong == nil && len(args) > 0 {
		if wrong = f.Parse(args); wrong != nil {
			break
		}
		rest := f.Args()
		if ended := len(rest) < len(args) && args[len(args)-len(rest)-1] == "--"; ended {
			inv.split = len(words) - 1
			words, args = append(words, rest...), nil
		} else if len(rest) > 0 {
			words, args = append(words, rest[0]), rest[1:]
		} else {
			args = nil
		}
	}
	if len(words) > 0 {
		inv.verb, inv.args = findVerb(words[0]), words[1:]
	}
	switch {
	case inv.verb == nil && len(words) > 0:
		return nil, helpVerb().misuse("unknown verb %q: the verbs are %s", words[0], strings.Join(verbNames(), ", "))
	case wrong != nil && inv.verb == nil:
		return nil, helpVerb().misuse("%v", wrong)
	case wrong != nil:
		return nil, inv.verb.misuse("%v", wrong)
	case inv.help:
		if inv.verb != nil {
			inv.args = []string{inv.verb.name}
		}
		inv.verb = helpVerb()
		return inv, nil
	case inv.verb == nil:
		return nil, helpVerb().misuse("a verb is missing: %s", strings.Join(verbNames(), ", "))
	}
	return inv, inv.check(f, getenv)
}

// check says what is wrong with flags and arguments that are well-formed.
func (inv *invocation) check(f *flag.FlagSet, getenv func(string) string) (err error) {
	v := inv.verb
	given := make(map[string]bool)
	f.Visit(func(set *flag.Flag) {
		given[set.Name] = true
		if err == nil && !slices.Contains(common, set.Name) && !slices.Contains(v.flags, set.Name) {
			err = v.misuse("--%s is no flag of %s", set.Name, v.name)
		}
	})
	switch {
	case err != nil:
		return err
	case len(inv.args) < v.least:
		return v.misuse("%s needs %s", v.name, v.args)
	case v.most >= 0 && len(inv.args) > v.most:
		return v.misuse("unexpected %q", inv.args[v.most])
	case inv.timeout <= 0:
		return v.misuse("--timeout is %v: it must be above 0", inv.timeout)
	case given["session-timeout"] && inv.sessionTimeout <= 0:
		return v.misuse("--session-timeout is %v: it must be above 0", inv.sessionTimeout)
	case given["semaphore"] && inv.semaphore <= 0:
		return v.misuse("--semaphore is %d: it must be above 0", inv.semaphore)
	case given["depth"] && inv.depth < 0:
		return v.misuse("--depth is %d: it must not be negative", inv.depth)
	case inv.older < 0:
		return v.misuse("--older is %v: it must not be negative", inv.older)
	case inv.live && inv.json:
		return v.misuse("--watch and --json exclude each other")
	case given["wait"] && inv.wait < 0:
		return v.misuse("--wait is %v: it must not be negative", inv.wait)
	case inv.try && given["wait"]:
		return v.misuse("--try and --wait exclude each other")
	case inv.read && inv.write, v.name == "lock" && inv.semaphore > 0 && (inv.read || inv.write):
		return v.misuse("--read, --write and --semaphore exclude each other")
	case (inv.tlsCert == "") != (inv.tlsKey == ""):
		return v.misuse("--tls-cert and --tls-key go together")
	}
	if text := getenv("PADDOCK_TLS"); text != "" && !given["tls"] {
		if inv.tls, err = strconv.ParseBool(text); err != nil { // taken for no, it would send passwords in the clear
			return v.misuse("PADDOCK_TLS is %q: it must be 1 or 0", text)
		}
	}
	inv.limited = given["timeout"]
	if len(inv.auths) == 0 {
		if auth := getenv("PADDOCK_AUTH"); auth != "" {
			inv.auths = values{auth}
		}
	}
	return nil
}

var errNoServers = errors.New("no servers: give --servers host:port or set PADDOCK_SERVERS")

func findVerb(name string) *verb {
	for _, v := range verbs() {
		if v.name == name {
			return v
		}
	}
	return nil
}

func helpVerb() *verb { return findVerb("help") }

func verbNames() (names []string) {
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return names
}

// verbs are all there are, in the order in which help lists them.
func verbs() []*verb {
	return []*verb{
		{name: "who", args: "PATH", short: "who holds a lock or leads, who waits behind whom", least: 1, most: 1, flags: []string{"semaphore"}, run: who},
		{name: "locks", args: "[PATH]", short: "all locks and elections below a path that somebody has, the oldest first", most: 1, flags: []string{"older", "watch"}, run: listLocks},
		{name: "tree", args: "[PATH]", short: "the nodes below a path, with the locks and elections among them", most: 1, flags: []string{"all", "depth"}, run: tree},
		{name: "ls", args: "[PATH]", short: "the names below a path", most: 1, flags: []string{"long"}, run: ls},
		{name: "get", args: "PATH", short: "the data of a node", least: 1, most: 1, flags: []string{"long"}, run: get},
		{name: "watch", args: "PATH", short: "the participants of a lock or an election, and each change, until interrupted", least: 1, most: 1, flags: []string{"semaphore"}, run: watch},
		{name: "break", args: "PATH", short: "take a lock from its holders: delete their nodes, or the one node that PATH is", least: 1, most: 1, flags: []string{"all", "semaphore", "yes"}, run: breakLock},
		{name: "lock", args: "PATH... -- COMMAND [ARGUMENT...]", short: "run a command while holding a lock, or several as one", least: 2, most: -1, flags: []string{"read", "write", "semaphore", "try", "wait", "grace", "id"}, run: lock},
		{name: "doctor", args: "[PATH]", short: "whether each server can be reached, how fast they are, what we may do at a path, and which session timeout to use", most: 1, run: doctor},
		{name: "completion", args: "bash|zsh|fish", short: "a script that completes verbs and flags in a shell", least: 1, most: 1, run: completion},
		{name: "version", short: "the version of this command", run: version},
		{name: "help", args: "[VERB]", short: "this text, or that of a verb", most: 1, run: help},
	}
}

// help prints what there is.
func help(_ context.Context, inv *invocation) error {
	var b strings.Builder
	if len(inv.args) == 0 {
		b.WriteString("Usage: paddock VERB [FLAG...] [ARGUMENT...]\n\nVerbs:\n")
		for _, v := range verbs() {
			fmt.Fprintf(&b, "  %-10s %s\n", v.name, v.short)
		}
		b.WriteString("\nFlags of every verb, which may stand before or behind it:\n" + describe(common) + "\n" + exitHelp)
		return inv.print(b.String())
	}
	v := findVerb(inv.args[0])
	if v == nil {
		return helpVerb().misuse("unknown verb %q: the verbs are %s", inv.args[0], strings.Join(verbNames(), ", "))
	}
	fmt.Fprintf(&b, "Usage: %s\n\n%s.\n", strings.TrimSpace("paddock "+v.name+" [FLAG...] "+v.args), strings.ToUpper(v.short[:1])+v.short[1:])
	if len(v.flags) > 0 {
		b.WriteString("\nFlags, besides those in paddock help:\n" + describe(v.flags))
	}
	return inv.print(b.String())
}

const exitHelp = `Exit codes:
  0 done, 1 failed, 2 wrong use, 65 no lock there, 66 no such node,
  69 servers not reached, 77 refused for want of rights, 128 and
  the number of the signal that has ended it;
  of lock besides: 75 somebody else has it, 76 it was lost, 126 the command
  cannot be run, 127 it was not found, or else the command's own exit code
`

// describe is what flags mean, a flag in two lines.
func describe(names []string) string {
	var b strings.Builder
	f := new(invocation).flagSet(func(string) string { return "" })
	for _, name := range names {
		if name == "h" {
			continue
		}
		value, usage := flag.UnquoteUsage(f.Lookup(name))
		fmt.Fprintf(&b, "  %s\n        %s\n", strings.TrimSpace("--"+name+" "+value), usage)
	}
	return b.String()
}
