package differential

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// text shows a record's fields that are not zero.
func (r *run) text(rec wire.Record) string {
	v := reflect.Indirect(reflect.ValueOf(rec))
	if v.Kind() != reflect.Struct {
		return ""
	}
	return strings.Join(r.fields(v), " ")
}

func (r *run) fields(v reflect.Value) []string {
	var out []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			out = append(out, r.fields(v.Field(i))...)
			continue
		}
		if s := r.value(f.Name, v.Field(i).Interface()); s != "" {
			out = append(out, strings.ToLower(f.Name[:1])+f.Name[1:]+"="+s)
		}
	}
	return out
}

// value shows one field, "" if it need not be shown.
func (r *run) value(field string, v any) string {
	switch v := v.(type) {
	case []byte:
		if v == nil {
			return "nil"
		}
		return fmt.Sprintf("%q", v)
	case string:
		return fmt.Sprintf("%q", v)
	case []string:
		if v == nil {
			return "nil"
		}
		if !r.unsorted {
			v = slices.Clone(v)
			slices.Sort(v) // a real server lists in the order of a hash table
		}
		return fmt.Sprintf("%q", v)
	case []wire.ACL:
		if v == nil {
			return "nil"
		}
		var out []string
		for _, a := range v {
			out = append(out, fmt.Sprintf("%s:%s:%d", a.Scheme, a.ID, a.Perms))
		}
		return "[" + strings.Join(out, " ") + "]"
	case []wire.ClientInfo:
		var out []string
		for _, c := range v {
			out = append(out, c.Scheme+":"+c.User)
		}
		slices.Sort(out)
		return "[" + strings.Join(out, " ") + "]"
	case wire.Stat:
		return "{" + strings.Join(r.fields(reflect.ValueOf(v)), " ") + "}"
	case []wire.MultiOp:
		var out []string
		for _, op := range v {
			out = append(out, fmt.Sprintf("%v{%s}", op.Op, r.text(op.Request)))
		}
		return strings.Join(out, " ")
	case []wire.MultiResult:
		var out []string
		for _, res := range v {
			out = append(out, r.result(res))
		}
		return strings.Join(out, " ")
	}
	switch field {
	case "Czxid", "Mzxid", "Pzxid", "RelativeZxid":
		return r.zxid(v.(int64))
	case "Ctime", "Mtime":
		return moment(v.(int64))
	case "EphemeralOwner":
		return r.owner(v.(int64))
	}
	return fmt.Sprint(v)
}

// result shows one outcome within a multi.
func (r *run) result(res wire.MultiResult) string {
	var parts []string
	if res.Path != "" {
		parts = append(parts, res.Path)
	}
	if res.Code != 0 {
		parts = append(parts, res.Code.String())
	}
	if res.Data != nil {
		parts = append(parts, fmt.Sprintf("%q", res.Data))
	}
	if res.Op == wire.OpGetChildren {
		parts = append(parts, r.value("", res.Children.Strings()))
	}
	if res.Stat != (wire.Stat{}) {
		parts = append(parts, r.value("", res.Stat))
	}
	return fmt.Sprintf("%v{%s}", res.Op, strings.Join(parts, " "))
}

// zxid shows a zxid as the distance from the script's beginning.
func (r *run) zxid(z int64) string {
	switch {
	case z == 0:
		return "0"
	case z < 0:
		return fmt.Sprint(z)
	case z <= r.base:
		return "old"
	}
	return fmt.Sprintf("z+%d", z-r.base)
}

// moment shows a time.
func moment(ms int64) string {
	if ms == 0 {
		return "0"
	}
	if d := time.Since(time.UnixMilli(ms)); d > -time.Minute && d < time.Minute {
		return "recent"
	}
	return "other"
}

// owner shows a session or what stands in its place.
func (r *run) owner(id int64) string {
	switch {
	case id == 0:
		return "0"
	case r.names[id] != "":
		return r.names[id]
	case id == -1<<63:
		return "container"
	case id>>56 == -1:
		return fmt.Sprintf("ttl(%d)", id&(1<<40-1))
	}
	return "unknown"
}
