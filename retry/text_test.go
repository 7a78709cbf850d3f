package retry_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

func TestTextForms(t *testing.T) {
	cases := []struct {
		policy retry.Policy
		want   string
	}{
		{retry.Policy{}, "unset"},
		{retry.None(), "none"},
		{retry.ExponentialBackoff(100*ms, 5), "exponential base=100ms retries=5"},
		{retry.BoundedExponentialBackoff(100*ms, 10*time.Second, 5).WithJitter(retry.FullJitter).WithMaxElapsed(time.Minute),
			"exponential base=100ms retries=5 max=10s jitter=full elapsed=1m"},
		{retry.BoundedExponentialBackoff(100*time.Microsecond, -1, -1), "exponential base=100µs retries=0"},
		{retry.NTimes(3, time.Second).WithJitter(retry.EqualJitter), "ntimes retries=3 sleep=1s jitter=equal"},
		{retry.NTimes(1, time.Second), "onetime sleep=1s"},
		{retry.OneTime(90 * time.Second).WithJitter(retry.NoJitter), "onetime sleep=1m30s jitter=none"},
		{retry.Forever(2 * time.Hour), "forever interval=2h"},
		{retry.Forever(2*time.Hour + time.Minute), "forever interval=2h1m"},
		{retry.Forever(2*time.Hour + time.Second), "forever interval=2h0m1s"},
		{retry.UntilElapsed(time.Minute, 0).WithAttemptTimeout(1500 * ms), "untilelapsed limit=1m sleep=1ms timeout=1.5s"},
		{retry.UntilElapsed(-1, time.Second), "untilelapsed limit=0s sleep=1s"},
		{retry.Policy{}.WithAttemptTimeout(time.Second).WithMaxElapsed(10 * time.Minute), "unset elapsed=10m timeout=1s"},
		{retry.OneTime(time.Second).WithMaxElapsed(time.Hour).WithMaxAfter(10 * time.Minute), "onetime sleep=1s elapsed=1h after=10m"},
		{retry.Forever(longest), "forever interval=2562047h47m16.854775807s"},
	}
	for _, tc := range cases {
		t.Run(tc.want, func(t *testing.T) {
			require.Equal(t, tc.want, tc.policy.String())
			again, err := retry.Parse(tc.want)
			require.NoError(t, err)
			assert.Equal(t, tc.policy, again, "the text says all there is")
		})
	}
}

func TestTextOfWhatCannotBeParsed(t *testing.T) {
	own := retry.Custom("own", func(int, time.Duration) (time.Duration, bool) { return 0, false })
	assert.Equal(t, "own", own.String())
	assert.Equal(t, "own elapsed=1s", own.Named("other").WithMaxElapsed(time.Second).String())
	_, err := retry.Parse("own")
	assert.Error(t, err)
}

func TestParseTakesAnyOrderAndSpacing(t *testing.T) {
	p, err := retry.Parse("  exponential\tjitter=curator max=10s\n retries=5  base=0.1s ")
	require.NoError(t, err)
	assert.Equal(t, retry.BoundedExponentialBackoff(100*ms, 10*time.Second, 5), p)
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	const kinds = "exponential, forever, none, ntimes, onetime, unset or untilelapsed"
	cases := []struct{ text, want string }{
		{"", "empty, want " + kinds},
		{" \n", "empty, want " + kinds},
		{"expo base=1s", `unknown kind "expo", want ` + kinds},
		{"Exponential base=1s", `unknown kind "Exponential", want ` + kinds},
		{"exponential base", `"base" is not of the form key=value`},
		{"exponential base=1s base=2s", `key "base" is given twice`},
		{"exponential bsae=1s retries=1", `unknown key "bsae", want base, retries, max, jitter, elapsed, timeout or after`},
		{"none base=1s", `unknown key "base", want jitter, elapsed, timeout or after`},
		{"none =1s", `unknown key "", want jitter, elapsed, timeout or after`},
		{"exponential retries=1", "base is missing"},
		{"exponential base=1s", "retries is missing"},
		{"exponential base=100 retries=1", "base=100 is not a duration such as 250ms or 1m30s"},
		{"exponential base=1sec retries=1", "base=1sec is not a duration such as 250ms or 1m30s"},
		{"exponential base= retries=1", "base= is not a duration such as 250ms or 1m30s"},
		{"exponential base=9999999h retries=1", "base=9999999h is not a duration such as 250ms or 1m30s"},
		{"exponential base=-1s retries=1", "base=-1s is below 0s"},
		{"exponential base=1s retries=many", "retries=many is not a number of retries, 0 or more"},
		{"exponential base=1s retries=-1", "retries=-1 is not a number of retries, 0 or more"},
		{"exponential base=1s retries=1s", "retries=1s is not a number of retries, 0 or more"},
		{"exponential base=1s retries=99999999999999999999", "retries=99999999999999999999 is not a number of retries, 0 or more"},
		{"exponential base=1s retries=1 max=0s", "max=0s is not above 0"},
		{"exponential base=1s retries=1 max=5", "max=5 is not a duration such as 250ms or 1m30s"},
		{"forever interval=0s", "interval=0s is below 1ms"},
		{"untilelapsed limit=1s sleep=1us", "sleep=1us is below 1ms"},
		{"none jitter=some", "jitter=some is unknown, want curator, none, full or equal"},
		{"none elapsed=-1s", "elapsed=-1s is not above 0"},
		{"exponential base=1s retries=+1", "retries=+1 is not a number of retries, 0 or more"},
		{"exponential base=+1s retries=1", "base=+1s is not a duration such as 250ms or 1m30s"},
		{"none timeout=+1s", "timeout=+1s is not a duration such as 250ms or 1m30s"},
		{"ntimes retries=1 sleep=99us", "sleep=99us is below 100µs"},
		{"none timeout=5ns", "timeout=5ns is below 100µs"},
		{"none after=0s", "after=0s is not above 0"},
		{"none timeout=soon", "timeout=soon is not a duration such as 250ms or 1m30s"},
	}
	for _, tc := range cases {
		t.Run(tc.text, func(t *testing.T) {
			p, err := retry.Parse(tc.text)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "retry policy ")
			assert.True(t, p.IsZero())

			before := retry.OneTime(time.Second).WithJitter(retry.FullJitter).Named("name")
			after := before
			require.Error(t, after.UnmarshalText([]byte(tc.text)))
			assert.Equal(t, before, after, "an error changes nothing")
		})
	}
}

func TestUnmarshalTextKeepsWhatTextCannotSay(t *testing.T) {
	failure, budget := errors.New("failure"), retry.NewBudget(1, 0)
	var told []int
	p := retry.ExponentialBackoff(time.Second, 3).Named("orders").
		WithJitter(retry.FullJitter).WithMaxElapsed(time.Minute).WithAttemptTimeout(time.Second).
		WithClassifier(retry.On(failure)).WithBudget(budget).
		OnRetry(hookNumbers(&told)).OnDone(hookNumbers(&told))

	require.NoError(t, p.UnmarshalText([]byte("ntimes retries=5 sleep=0s")))

	assert.Equal(t, "ntimes retries=5 sleep=0s", p.String(), "what text can say is replaced, all of it")
	err := retry.Do(t.Context(), p, fails(failure))
	assert.ErrorIs(t, err, retry.ErrNoBudget)
	assert.ErrorContains(t, err, "retry orders: ")
	assert.Equal(t, []int{1, 2}, told)
	assert.ErrorIs(t, retry.Do(t.Context(), p, fails(io.EOF)), retry.ErrStopped)
}

func TestPolicyAsFlag(t *testing.T) {
	p := retry.OneTime(time.Second).Named("orders")
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.TextVar(&p, "retry", p, "policy for orders")

	assert.Equal(t, "onetime sleep=1s", flags.Lookup("retry").DefValue)
	require.NoError(t, flags.Parse([]string{"-retry", "forever interval=3s"}))
	assert.Equal(t, "forever interval=3s", p.String())
	require.ErrorContains(t, flags.Parse([]string{"-retry", "forever interval=3"}), "interval=3 is not a duration")
	assert.Equal(t, retry.Forever(3*time.Second).Named("orders"), p)
}

func TestPolicyInJSON(t *testing.T) {
	type config struct {
		Set   retry.Policy
		None  retry.Policy
		Unset retry.Policy
		Gone  retry.Policy `json:",omitzero"`
	}
	in := config{Set: retry.NTimes(3, time.Second), None: retry.None()}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	assert.JSONEq(t, `{"Set":"ntimes retries=3 sleep=1s","None":"none","Unset":"unset"}`, string(text))
	var out config
	require.NoError(t, json.Unmarshal(text, &out))
	assert.Equal(t, in, out)
	assert.True(t, out.Unset.IsZero())
	assert.False(t, out.None.IsZero())
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "unset", "none timeout=1s", "exponential base=100ms retries=5 max=10s jitter=full elapsed=1m",
		"ntimes retries=0 sleep=1h0m0s", "onetime sleep=1.5us jitter=none", "forever interval=1ms jitter=equal",
		"untilelapsed limit=1m sleep=1s jitter=curator", "forever interval=-1s", "none a=b=c", "none elapsed",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := retry.Parse(text)
		if err != nil {
			assert.True(t, p.IsZero())
			return
		}
		again, err := retry.Parse(p.String())
		require.NoError(t, err)
		assert.Equal(t, p.String(), again.String())
		for _, retries := range []int{0, 1, 29, math.MaxInt} {
			delay, _ := p.Next(retries, time.Duration(retries))
			assert.GreaterOrEqual(t, delay, time.Duration(0))
		}
	})
}
