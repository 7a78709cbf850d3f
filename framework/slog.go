package framework

import (
	"context"
	"log/slog"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// SlogLogger is a logger for Config.Logger that writes to a handler of package log/slog.
//
// The levels debug, info, warn and error keep their names, and higher levels become
// error. A field becomes an attribute with a value of the same kind, and a namespace of
// zap becomes a group. The name of a logger is the attribute "logger". A nil handler logs
// nothing. The logger is safe for use by many goroutines if the handler is, as those of
// package slog are.
func SlogLogger(h slog.Handler) *zap.Logger {
	if h == nil {
		return zap.NewNop()
	}
	return zap.New(slogCore{h})
}

// slogCore is zap's side of a handler.
type slogCore struct{ handler slog.Handler }

// Enabled implements zapcore.Core.
func (c slogCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(l))
}

// With implements zapcore.Core.
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	h := c.handler
	for len(fields) > 0 {
		attrs, group, rest := attrsOf(fields)
		if len(attrs) > 0 {
			h = h.WithAttrs(attrs)
		}
		if group != "" {
			h = h.WithGroup(group)
		}
		fields = rest
	}
	return slogCore{h}
}

// Check implements zapcore.Core.
func (c slogCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	h := c.handler
	var attrs []slog.Attr
	for group := ""; len(fields) > 0; {
		attrs, group, fields = attrsOf(fields)
		if group == "" {
			break
		}
		h, attrs = h.WithAttrs(attrs).WithGroup(group), nil
	}
	r := slog.NewRecord(e.Time, slogLevel(e.Level), e.Message, e.Caller.PC)
	if e.LoggerName != "" {
		r.AddAttrs(slog.String("logger", e.LoggerName))
	}
	r.AddAttrs(attrs...)
	if e.Stack != "" {
		r.AddAttrs(slog.String("stack", e.Stack))
	}
	return h.Handle(context.Background(), r)
}

// Sync implements zapcore.Core. Handlers have nothing like it.
func (slogCore) Sync() error { return nil }

func slogLevel(l zapcore.Level) slog.Level {
	switch {
	case l < zapcore.InfoLevel:
		return slog.LevelDebug
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// attrsOf are the attributes of the fields up to the next namespace, whose name is group,
// and the fields behind it.
func attrsOf(fields []zapcore.Field) (attrs []slog.Attr, group string, rest []zapcore.Field) {
	for i, f := range fields {
		switch f.Type {
		case zapcore.SkipType:
		case zapcore.NamespaceType:
			return attrs, f.Key, fields[i+1:]
		default:
			attrs = append(attrs, attrOf(f)...)
		}
	}
	return attrs, "", nil
}

// attrOf is one field, which may hold several.
func attrOf(f zapcore.Field) []slog.Attr {
	switch f.Type {
	case zapcore.StringType:
		return []slog.Attr{slog.String(f.Key, f.String)}
	case zapcore.DurationType:
		return []slog.Attr{slog.Duration(f.Key, time.Duration(f.Integer))}
	case zapcore.ErrorType:
		return []slog.Attr{slog.Any(f.Key, f.Interface)}
	}
	values := zapcore.NewMapObjectEncoder()
	f.AddTo(values)
	var attrs []slog.Attr
	for key, value := range values.Fields {
		attrs = append(attrs, slog.Any(key, value))
	}
	return attrs
}
