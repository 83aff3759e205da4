// Package headgate limits how often things happen: per tenant, per user, per partner, in one process or in a fleet that shares a budget.
//
// A [Limit] is a number of tokens per period. A [Limiter] holds keys to limits, and a [Store] remembers what each key has used. Every
// decision is one atomic step of the store, at one instant of the store's own clock: there is no moment between looking and taking.
//
// A complete program:
//
//	func main() {
//		store, err := headgate.NewMemory(headgate.MemoryConfig{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer store.Close()
//		limiter, err := headgate.New(store, []headgate.Limit{headgate.PerMinute(3)}, headgate.Config{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		for range 4 {
//			d, err := limiter.Allow(context.Background(), "acme")
//			fmt.Println(d.Allowed, d.Remaining, err)
//		}
//	}
//
// It prints true three times and then false: a denial is a [Decision], not an error, and says in RetryAfter exactly how long to wait. An
// error means that nobody could decide; then the [FailureMode] says what the caller gets, and Decision.Source that it did.
//
// # Asking
//
//   - [Limiter.Allow] asks for one token under all of the limiter's limits. Most callers want this.
//   - [Limiter.AllowN] asks for n tokens, all or none: a request that costs more than others.
//   - [Limiter.Take] takes keys and limits per call: a plan per tenant, or an organisation, its teams and their users in one decision.
//   - [Limiter.Wait] blocks until the tokens are there: for calls to others that hold you to a limit. [Limiter.WaitCharges] does so for keys and limits per call.
//   - [Limiter.Peek] looks and changes nothing; [Limiter.Refund] gives back; [Limiter.Reset] forgets.
//
// # Limits
//
// [PerSecond] and its like make token buckets, which allow a burst and then a steady rate. [ParseLimit] reads text such as
// "100/minute burst 20" or "1000/day fixed-window"; a Limit also reads and writes itself as text in JSON and YAML. [Algorithm] lists
// the five ways of counting. Numbers are exact: 7 a minute is 420 an hour, and not one more or less.
//
// Give a limit a Name if its numbers may change: then keys keep what they have used.
//
// # Which package next
//
//   - To share a budget between processes, put a redisstore.Store in place of the [Memory]: github.com/headgate/headgate/redisstore, a
//     module of its own, so that this one depends on nothing.
//   - To limit an HTTP server, use github.com/headgate/headgate/httplimit.
//   - To call others who hold you to a limit, use github.com/headgate/headgate/outbound.
//   - To write a store, implement [Store] and run the suite in github.com/headgate/headgate/storetest.
//   - To run a gateway without writing Go, see the program in github.com/headgate/headgate/cmd/headgate.
//
// # Concurrency
//
// A [Limiter] and every [Store] are safe for use by many goroutines at once. A [Limit], a [Charge] and a [Decision] are plain values.
// What this package does, it does on the caller's goroutine, and needs no end. The one exception is the probe of a [Guard] whose store
// has not answered: one at a time, over within the time-out. Nothing is shared behind your back: two limiters on one store share its
// counters, two stores share none.
package headgate
