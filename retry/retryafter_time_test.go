package retry_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/retry"
)

func TestParseRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := time.Now().Add(90 * time.Second).UTC()
		for value, want := range map[string]time.Duration{
			"0": 0, "120": 2 * time.Minute, " 7\t": 7 * time.Second, "007": 7 * time.Second,
			soon.Format(http.TimeFormat):                               90 * time.Second,
			strings.Replace(soon.Format(time.RFC850), "UTC", "GMT", 1): 90 * time.Second,
			soon.Format(time.ANSIC):                                    90 * time.Second,
			"Wed, 01 Jan 9000 00:00:00 GMT":                            math.MaxInt64,
			"Fri, 31 Dec 1999 23:59:59 GMT":                            0,
			"9223372036":                                               9223372036 * time.Second,
			"9223372037":                                               math.MaxInt64,
			"99999999999":                                              math.MaxInt64,
			"99999999999999999999999999":                               math.MaxInt64,
			"":                                                         0,
			"-1":                                                       0,
			"+5":                                                       0,
			"1.5":                                                      0,
			"1e9":                                                      0,
			"5s":                                                       0,
			"soon":                                                     0,
			"Fri, 31 Dec 2999":                                         0,
			"٣":                                                        0,
			soon.Add(time.Hour).Format(http.TimeFormat) + "x": 0,
		} {
			assert.Equal(t, want, retry.ParseRetryAfter(value), "%q", value)
		}
	})
}
