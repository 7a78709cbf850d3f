package retry

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseRetryAfter reads the value of HTTP's header Retry-After, a number of seconds or a
// date, and returns how long from now that is. It returns 0 for a value that is empty,
// malformed, negative or in the past, and the longest Duration for one that is too
// large. Give the result to AgainAfter or UnsureAfter: their 0 is the policy's own delay.
//
// Source: RFC 9110, 10.2.3 and 5.6.7.
func ParseRetryAfter(value string) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return time.Duration(seconds) * time.Second
	}
	// As http.ParseTime, without a net/http in each program that retries.
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if date, err := time.Parse(layout, value); err == nil {
			return max(0, time.Until(date))
		}
	}
	return 0
}
