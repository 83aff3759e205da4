// Package httplimit is net/http middleware over a [headgate.Limiter]: it asks about every request, tells callers what they have left, and
// answers those who have nothing left with 429.
//
// A server that gives each client address 10 requests a second:
//
//	store, err := headgate.NewMemory(headgate.MemoryConfig{}) // or redisstore.New: then a whole fleet shares the limits
//	...
//	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerSecond(10)}, headgate.Config{})
//	...
//	client, err := httplimit.NewClientIP(httplimit.ClientIPConfig{})
//	...
//	limit, err := httplimit.New(limiter, httplimit.Config{Key: client.Key})
//	...
//	http.ListenAndServe(":8080", limit(mux))
//
// # Who pays
//
// [Config.Key] says who pays. There is no default, since the wrong one is worse than none:
//
//   - [ClientIP] takes the address of the connection. Behind a proxy that is the proxy's, for everyone: name your proxies in
//     [ClientIPConfig.Trusted], and what they say is believed, and what anybody else says is not.
//   - [HeaderKey] takes a header field that an authenticating layer in front sets. Never one that callers can choose.
//   - Any function of yours: the tenant that your authentication put into the request's context. It may fail with a [*StatusError] for
//     401 and 403, or with [ErrUnlimited] for those who are not limited.
//   - [ComposeKeys] and [JoinKey] make one key of several parts.
//
// Where limits depend on the caller, [Config.Charges] returns keys, costs and limits at once, and all of them are decided together. Prefer
// that to one middleware inside another, where a request that the inner one denies has already been charged by the outer one.
//
// # What callers see
//
// Every response that was decided has the fields RateLimit and RateLimit-Policy, or those of an older dialect: [Fields]. A denied one:
//
//	HTTP/1.1 429 Too Many Requests
//	Cache-Control: no-store
//	Content-Type: application/problem+json
//	Ratelimit: "burst";r=0;t=12
//	Ratelimit-Policy: "burst";q=100;w=60
//	Retry-After: 12
//
//	{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as
//	assigned quota has been exceeded","status":429,"detail":"Retry after 12 seconds.","violated-policies":["burst"]}
//
// Retry-After is the decision's RetryAfter rounded up to seconds: never 0, and missing where no wait would do. When the store cannot
// answer and the limiter's failure mode is [headgate.FailClosed], the answer is 503 with Retry-After: 1, since nothing is known of any quota.
// [Config.OnDenied] and [Config.OnError] replace these answers; [WriteDenied] and [WriteError] are what they replace.
//
// A CORS preflight (OPTIONS with Origin and Access-Control-Request-Method) passes untouched and uncounted. Put CORS middleware around this
// one, so that a page can read the 429 too, and let it expose Retry-After and RateLimit.
package httplimit
