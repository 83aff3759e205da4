// Package promlimit counts the decisions of limiters for Prometheus.
//
// An [Observer] is what a limiter is given, and it is a collector, to be registered with a registry of your choice:
//
//	observer, err := promlimit.New(promlimit.Config{Registerer: registry})
//	...
//	limiter, err := headgate.New(store, limits, headgate.Config{Observer: observer})
//
// Its series, whose names begin with the namespace:
//
//   - headgate_decisions_total{limit, decision, source} counts decisions: decision is allowed or denied, source who decided, which is
//     store, local, open, closed, lease or cache. The limit is the binding one, so each decision is counted once.
//   - headgate_decision_seconds{source} is how long decisions took.
//   - headgate_store_errors_total{reason} counts decisions that the store did not make: reason is timeout, breaker (it was not asked,
//     since it did not answer before) or failed.
//   - headgate_abandoned_total counts requests whose caller went away before there was a decision. They are in no other series.
//   - headgate_invalid_charges_total counts requests that no store is asked about, since they make no sense.
//   - headgate_breaker_state is 0 while the store is asked, 1 while it is not, 2 while a probe is under way.
//   - headgate_breaker_changes_total{to} counts its changes: to is closed, open or half-open.
//
// # Bounds
//
// No series is named by a key. The values of limit are the names of limits, or their text form where they have none; once there are
// [Config.MaxValues] of them, all others are counted as [Other]. So the number of series has a bound, whatever is asked.
//
// An observation of a limit that was met before allocates nothing.
package promlimit
