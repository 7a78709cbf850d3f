package framework

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// ParseConfig reads a Config from lines of the form
//
//	SessionTimeout = 10s
//
// with the names of fields, TLSFiles.CA for those of TLSFiles, and in any order. Empty
// lines and those that begin with # are passed over. Durations are as in
// time.ParseDuration, Retry as in retry.Parse, and SessionLease is "quorum" or "server". Auth
// is a scheme, a colon and the data, as in digest:user:password, and may stand there
// several times. Fields with functions or objects are for programs alone. Space around a
// value is not part of it.
//
// Errors are *ConfigError and name the field, or the line that has none. Start checks the
// values themselves.
func ParseConfig(text string) (cfg Config, err error) {
	seen := make(map[string]bool)
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(text, byteOrderMark)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		switch _, known := settings[name]; {
		case ok && !known && strings.ContainsFunc(name, notInFields) && meant(name) != "": // it and the next are not shown: they may have a password
			return Config{}, &ConfigError{Field: "text", Err: fmt.Errorf("has a line that names no field (line %d)%s", number, meant(name))}
		case !ok, name == "", !known && strings.ContainsFunc(name, notInFields):
			return Config{}, &ConfigError{Field: "text", Err: fmt.Errorf("has a line that is not: field = value (line %d)", number)}
		case !known:
			return Config{}, &ConfigError{Field: name, Err: errors.New("is no field that a text can set" + meant(name))}
		case seen[name] && name != "Auth":
			return Config{}, &ConfigError{Field: name, Err: errors.New("is set twice")}
		}
		seen[name] = true
		if err := cfg.set(name, value); err != nil {
			return Config{}, &ConfigError{Field: name, Err: err}
		}
	}
	return cfg, nil
}

// meant names the field that a name was to be: it differs in case or signs, or is the field's
// variable, which may have a prefix.
func meant(name string) string {
	letters := onlyLetters(name)
	for field := range settings {
		variable := variableOf(field)
		if letters == onlyLetters(field) || letters == onlyLetters(variable) || strings.HasSuffix(name, "_"+variable) {
			return ": write " + field
		}
	}
	return ""
}

func onlyLetters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// byteOrderMark is what some editors begin a text with.
const byteOrderMark = "\ufeff"

// ConfigFromEnv reads a Config from environment variables: what ParseConfig can set, in
// capitals and with a prefix. With "ZK_", SessionTimeout is ZK_SESSION_TIMEOUT. Variables
// that are empty, or have other names, are passed over. Space around a value, such as the end
// of a line, is not part of it. ZK_AUTH has one credential. Errors are *ConfigError and name
// the variable.
func ConfigFromEnv(prefix string) (cfg Config, err error) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		variable := prefix + variableOf(name)
		value := os.Getenv(variable)
		if strings.TrimSpace(value) == "" {
			continue
		}
		if err := cfg.set(name, value); err != nil {
			return Config{}, &ConfigError{Field: variable, Err: err}
		}
	}
	return cfg, nil
}

// variableOf is SESSION_TIMEOUT for SessionTimeout.
func variableOf(name string) string {
	name = strings.ReplaceAll(strings.ReplaceAll(name, ".", ""), "TLSFiles", "Tls")
	var b strings.Builder
	for i, r := range name {
		isCapital := func(i int) bool { return i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
		if i > 0 && isCapital(i) && !isCapital(i-1) {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// settings are the fields that a text can set, as pointers.
var settings = map[string]func(*Config) any{
	"ConnectString":        func(cfg *Config) any { return &cfg.ConnectString },
	"SessionTimeout":       func(cfg *Config) any { return &cfg.SessionTimeout },
	"ConnectTimeout":       func(cfg *Config) any { return &cfg.ConnectTimeout },
	"CloseTimeout":         func(cfg *Config) any { return &cfg.CloseTimeout },
	"LostAfter":            func(cfg *Config) any { return &cfg.LostAfter },
	"Retry":                func(cfg *Config) any { return &cfg.Retry },
	"Namespace":            func(cfg *Config) any { return &cfg.Namespace },
	"Auth":                 func(cfg *Config) any { return &cfg.Auth },
	"FollowEnsemble":       func(cfg *Config) any { return &cfg.FollowEnsemble },
	"Prefer":               func(cfg *Config) any { return &cfg.Prefer },
	"TLSFiles.CA":          func(cfg *Config) any { return &cfg.TLSFiles.CA },
	"TLSFiles.Certificate": func(cfg *Config) any { return &cfg.TLSFiles.Certificate },
	"TLSFiles.Key":         func(cfg *Config) any { return &cfg.TLSFiles.Key },
	"CanBeReadOnly":        func(cfg *Config) any { return &cfg.CanBeReadOnly },
	"SessionLease":         func(cfg *Config) any { return &cfg.SessionLease },
	"ServerTick":           func(cfg *Config) any { return &cfg.ServerTick },
	"NoContainers":         func(cfg *Config) any { return &cfg.NoContainers },
	"NoBatches":            func(cfg *Config) any { return &cfg.NoBatches },
	"MaxReply":             func(cfg *Config) any { return &cfg.MaxReply },
	"MaxRequest":           func(cfg *Config) any { return &cfg.MaxRequest },
}

// notInFields is whether no name of a field has a character.
func notInFields(r rune) bool { return r != '.' && !unicode.IsLetter(r) }

// set sets a field that is in settings.
func (cfg *Config) set(name, value string) (err error) {
	if value = strings.TrimSpace(value); strings.ContainsAny(value, "\r\n") { // not shown: it may be a password
		return errors.New("has more than one line")
	}
	if n := len(value); n > 1 && value[0] == value[n-1] && strings.ContainsAny(value[:1], `"'`) {
		return errors.New("is in quotes, which would be part of it: leave them out")
	}
	switch field := settings[name](cfg).(type) {
	case *string:
		*field = value
	case *bool:
		if *field, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("is %q: it must be true or false", value)
		}
	case *int:
		if *field, err = strconv.Atoi(value); err != nil {
			err = fmt.Errorf("is %q: it must be a number of bytes", value)
		}
	case *time.Duration:
		if *field, err = time.ParseDuration(value); err != nil {
			err = fmt.Errorf("is %q: it must be a duration with a unit, such as 10s", value)
		}
	case *SessionLease:
		var ok bool
		if *field, ok = map[string]SessionLease{"quorum": LeaseByQuorum, "server": LeaseByServer}[value]; !ok {
			err = fmt.Errorf("is %q: it must be quorum or server", value)
		}
	case *[]string:
		for part := range strings.SplitSeq(value, ",") {
			*field = append(*field, strings.TrimSpace(part))
		}
	case *[]Auth:
		scheme, data, ok := strings.Cut(value, ":")
		if !ok || scheme == "digest" && !strings.Contains(data, ":") {
			err = errors.New("must be a scheme, a colon and the data, as in digest:user:password")
		}
		*field = append(*field, Auth{Scheme: scheme, Data: []byte(data)})
	case encoding.TextUnmarshaler: // *retry.Policy
		if err = field.UnmarshalText([]byte(value)); err != nil {
			err = fmt.Errorf("cannot be read: %w", err)
		}
	}
	return err
}
