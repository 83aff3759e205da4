// Package outbound is an [http.RoundTripper] over a [headgate.Limiter], for calls to others who hold you to a limit: it waits for its turn,
// listens when they ask for a pause, and counts what really left the building.
//
// A fleet that calls a partner 100 times a second and no more:
//
//	store, err := redisstore.New(client, redisstore.Config{}) // or headgate.NewMemory, for one process
//	...
//	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerSecond(100)}, headgate.Config{})
//	...
//	transport, err := outbound.NewTransport(nil, limiter, outbound.Config{
//		Key:     func(*http.Request) (string, error) { return "partner", nil },
//		MaxWait: 2 * time.Second,
//	})
//	...
//	partner := &http.Client{Transport: transport}
//
// # Waiting
//
// Requests of a key wait in order of arrival, for up to [Config.MaxWait]; whoever would have to wait longer fails at once, with a
// [*LimitedError] that says in RetryAfter when to try again. Who gives up, since the context of the request ended, takes nothing along.
// The order is that of one process: those of a fleet are served as the limiter grants.
//
// # Pauses
//
// What a response says of when to come again is believed, as [Fields] lists: a 429 or 503 with Retry-After, and any response which says
// that nothing remains and when that changes. A field that cannot be read is ignored, and 503 alone is no pause. Dates are read by the Date of the
// response, so that it does not matter whose clock is wrong. What is absurd is cut to [Config.MaxPause].
//
// A pause holds for its key in the whole fleet. It lies in the store, as a counter of the same key that each request looks at together
// with what it is charged, in one step and one round trip:
//
//   - It is a token bucket, "1000/ms", of which a token is a microsecond of pause. What is in use drains as time passes, so the pause ends by
//     the store's clock, outlives the process that was told of it, and a clock that steps back does not make it longer.
//   - The longest pause wins: one that is longer than what is in use is charged with the difference, on condition that nobody has charged since,
//     which the store decides in the same step, and a shorter one is charged nothing. Nothing ever shortens a pause.
//   - Every process sees it with its next decision. What that decision was granted is given back, and from then on the process looks before
//     it asks, so that a pause costs nothing.
//   - While the store cannot be told, a pause holds in the process that heard of it, and the store is told once it answers.
//
// On a Redis Cluster, charges and pause are one step where the key of the charges is that of the pause, as with [Config.Key]. The decisions
// about pauses are the limiter's, so its [headgate.Observer] sees them too.
//
// Those who wait for the end of a pause are not all let go at once: each process spreads its own over [Config.Jitter] after the end, at random
// and in order, and never before it. Then the limiter meters them.
//
// # What left the building
//
// [Transport.Counts] and [Observer] tell apart what was asked, what was allowed, and what was sent, which is counted where the header of a
// request was written to a connection: after the limiter, where nothing can be added. An upstream's own count must agree with that. A request that
// provably never left, since there was no connection to be had, is given its tokens back.
//
// Nothing is sent twice, unless [Config.Retries] asks for it: see [Transport].
package outbound
