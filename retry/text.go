package retry

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads a schedule, such as
//
//	exponential base=100ms retries=5 max=10s jitter=full elapsed=1m
//
// First comes the kind, then key=value pairs in any order. Durations are
// written as for time.ParseDuration, without a plus sign. Those of a limit must be
// above 0, and none may be between 0 and 100µs.
//
//	exponential   base retries [max]   ExponentialBackoff, BoundedExponentialBackoff
//	ntimes        retries sleep        NTimes
//	onetime       sleep                OneTime
//	forever       interval             Forever, 1ms or more
//	untilelapsed  limit sleep          UntilElapsed, sleep 1ms or more
//	none                               None
//	unset                              the zero Policy
//
// All kinds take jitter=curator, none, full or equal (WithJitter), elapsed
// (WithMaxElapsed), timeout (WithAttemptTimeout) and after (WithMaxAfter). The
// error says which word or value is wrong.
func Parse(text string) (Policy, error) {
	p, err := parse(strings.Fields(text))
	if err != nil {
		return Policy{}, fmt.Errorf("retry policy %q: %w", text, err)
	}
	return p, nil
}

// String returns what Parse reads, on one line and with a fixed order of keys.
// For Custom it is the name given there, and for FromBackOff "backoff", each
// followed by jitter, elapsed, timeout and after if they are set.
func (p Policy) String() string {
	text := "unset"
	if p.schedule != nil {
		text = p.schedule.text()
	}
	if p.jitter != CuratorJitter {
		text += " jitter=" + p.jitter.String()
	}
	if p.maxElapsed > 0 {
		text += " elapsed=" + brief(p.maxElapsed)
	}
	if p.attemptTimeout > 0 {
		text += " timeout=" + brief(p.attemptTimeout)
	}
	if p.maxAfter > 0 {
		text += " after=" + brief(p.maxAfter)
	}
	return text
}

// MarshalText returns String for encoders and flag.TextVar. It never fails.
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText replaces all that text can say: the schedule, jitter, elapsed
// bound, attempt timeout and bound of WithMaxAfter. Name, classifiers, judges of
// results, budget and hooks stay. The texts and errors are those of Parse; after an
// error p is as it was. Do not call it while p is in use by other goroutines.
func (p *Policy) UnmarshalText(text []byte) error {
	q, err := Parse(string(text))
	if err != nil {
		return err
	}
	p.schedule, p.jitter, p.maxElapsed, p.attemptTimeout, p.maxAfter = q.schedule, q.jitter, q.maxElapsed, q.attemptTimeout, q.maxAfter
	return nil
}

func (s exponential) text() string {
	text := "exponential base=" + brief(s.base) + " retries=" + strconv.Itoa(s.retries)
	if s.max < unbounded {
		text += " max=" + brief(s.max)
	}
	return text
}

func (s nTimes) text() string {
	if s.retries == 1 {
		return "onetime sleep=" + brief(s.sleep)
	}
	return "ntimes retries=" + strconv.Itoa(s.retries) + " sleep=" + brief(s.sleep)
}

func (s forever) text() string { return "forever interval=" + brief(s.interval) }

func (s untilElapsed) text() string {
	return "untilelapsed limit=" + brief(s.limit) + " sleep=" + brief(s.sleep)
}

func (s never) text() string { return "none" }

func (s custom) text() string { return s.name }

// brief writes 1m for 1m0s.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// kinds reads what follows a policy's first word.
var kinds = map[string]func(f *fields) Policy{
	"exponential": func(f *fields) Policy {
		base, retries := f.duration("base", 0), f.count("retries")
		return BoundedExponentialBackoff(base, f.limit("max"), retries)
	},
	"ntimes":  func(f *fields) Policy { return NTimes(f.count("retries"), f.duration("sleep", 0)) },
	"onetime": func(f *fields) Policy { return OneTime(f.duration("sleep", 0)) },
	"forever": func(f *fields) Policy { return Forever(f.duration("interval", minInterval)) },
	"untilelapsed": func(f *fields) Policy {
		return UntilElapsed(f.duration("limit", 0), f.duration("sleep", minInterval))
	},
	"none":  func(*fields) Policy { return None() },
	"unset": func(*fields) Policy { return Policy{} },
}

func parse(words []string) (Policy, error) {
	known := list(slices.Sorted(maps.Keys(kinds)))
	if len(words) == 0 {
		return Policy{}, errors.New("empty, want " + known)
	}
	kind, ok := kinds[words[0]]
	if !ok {
		return Policy{}, fmt.Errorf("unknown kind %q, want %s", words[0], known)
	}
	f, err := newFields(words[1:])
	if err != nil {
		return Policy{}, err
	}
	p := kind(f).WithJitter(f.jitter()).WithMaxElapsed(f.limit("elapsed")).WithAttemptTimeout(f.limit("timeout")).WithMaxAfter(f.limit("after"))
	return p, f.mistake()
}

// fields holds key=value pairs. It remembers the first mistake and the keys
// that were read.
type fields struct {
	keys   []string // in the text's order
	values map[string]string
	known  []string
	err    error
}

func newFields(words []string) (*fields, error) {
	f := &fields{values: make(map[string]string, len(words))}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form key=value", word)
		}
		if _, twice := f.values[key]; twice {
			return nil, fmt.Errorf("key %q is given twice", key)
		}
		f.keys = append(f.keys, key)
		f.values[key] = value
	}
	return f, nil
}

// mistake puts an unknown key first: often it is a missing key with a misspelt
// name.
func (f *fields) mistake() error {
	for _, key := range f.keys {
		if !slices.Contains(f.known, key) {
			return fmt.Errorf("unknown key %q, want %s", key, list(f.known))
		}
	}
	return f.err
}

func (f *fields) get(key string) (value string, ok bool) {
	f.known = append(f.known, key)
	value, ok = f.values[key]
	return value, ok
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// duration reads a key that must be there.
func (f *fields) duration(key string, least time.Duration) time.Duration {
	value, ok := f.get(key)
	if !ok {
		f.fail("%s is missing", key)
		return 0
	}
	d, err := time.ParseDuration(value)
	switch {
	case err != nil || value[0] == '+':
		f.fail("%s=%s is not a duration such as 250ms or 1m30s", key, value)
	case d < least:
		f.fail("%s=%s is below %v", key, value, least)
	case d > 0 && d < shortest:
		f.fail("%s=%s is below %v", key, value, shortest)
	}
	return d
}

// limit reads a key that may be left out; the result is 0 then.
func (f *fields) limit(key string) time.Duration {
	if _, ok := f.values[key]; !ok {
		f.known = append(f.known, key)
		return 0
	}
	d := f.duration(key, math.MinInt64)
	if d <= 0 {
		f.fail("%s=%s is not above 0", key, f.values[key])
	}
	return d
}

func (f *fields) count(key string) int {
	value, ok := f.get(key)
	if !ok {
		f.fail("%s is missing", key)
		return 0
	}
	n, err := strconv.ParseUint(value, 10, strconv.IntSize-1) // takes no sign
	if err != nil {
		f.fail("%s=%s is not a number of retries, 0 or more", key, value)
	}
	return int(n)
}

func (f *fields) jitter() Jitter {
	value, ok := f.get("jitter")
	if !ok {
		return CuratorJitter
	}
	for j := CuratorJitter; j <= EqualJitter; j++ {
		if j.String() == value {
			return j
		}
	}
	f.fail("jitter=%s is unknown, want curator, none, full or equal", value)
	return CuratorJitter
}

// list joins words as in "a, b or c".
func list(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
