// Package otellimit tells OpenTelemetry of the decisions of limiters: as metrics, and as events on the spans of the requests.
//
//	observer, err := otellimit.New(otellimit.Config{MeterProvider: meters})
//	...
//	limiter, err := headgate.New(store, limits, headgate.Config{Observer: observer})
//
// The metrics:
//
//   - headgate.decisions counts decisions, with the attributes headgate.limit, headgate.decision (allowed or denied) and headgate.source
//     (store, local, open, closed, lease or cache). The limit is the binding one, so each decision is counted once.
//   - headgate.decision.duration is how long they took in seconds, with headgate.source.
//   - headgate.store.errors counts decisions that the store did not make, with headgate.reason: timeout, breaker (it was not asked, since
//     it did not answer before) or failed.
//   - headgate.abandoned counts requests whose caller went away before there was a decision; headgate.invalid_charges those that make no
//     sense. They are in no other metric.
//   - headgate.breaker.state is 0 while the store is asked, 1 while it is not, 2 while a probe is under way.
//   - headgate.breaker.changes counts its changes, with headgate.breaker.to: closed, open or half-open.
//
// Where the context of a decision holds a span that is recorded, the decision is an event on it, named headgate.decision, with the same
// attributes and with headgate.remaining and, for a denial, headgate.retry_after in seconds. [Config.Trace] asks for spans instead, or
// for neither.
//
// # Bounds
//
// No attribute holds a key. The values of headgate.limit are the names of limits, or their text form where they have none; once there are
// [Config.MaxLimits] of them, all others are [Other]. So the number of series has a bound, whatever is asked.
package otellimit
