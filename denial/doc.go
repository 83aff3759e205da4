// Package denial spares a store the requests of those who were denied and come again too early.
//
//	guard, err := headgate.NewGuard(store, headgate.GuardConfig{})
//	...
//	cache, err := denial.New(guard, denial.Config{})
//	...
//	limiter, err := headgate.New(cache, limits, headgate.Config{})
//
// A [Store] remembers a denial that left nothing to anybody, and answers in process, with Source [headgate.FromCache], until the instant
// at which a token comes back. A caller who hammers costs then a call of the store now and then, whatever the rate.
//
// # What is answered here
//
// A denial says when its own request can succeed. It says what others find meanwhile only if it left no token to be had, so a
// denial is remembered if its Remaining is 0 and
//
//   - its cost was 1, in every algorithm: its RetryAfter is when the first token comes back, so nothing can be granted before; or
//   - the algorithm is a fixed or an aligned window, whatever the cost: all tokens come back at once, at the window's end; or
//   - the limit's capacity is 0: none ever comes back.
//
// While it holds, the same key under the same limit is answered here for a cost of 1, for every cost where the algorithm is a fixed
// or aligned window, and for costs above the capacity. Such an answer is what the store would say, in every field but Source: nothing
// is left, and the waits have become shorter by the time that has passed.
//
// The store is asked about everything else: other costs, since their waits cannot be told from the first token's; a cost of 0, which wants
// to know; requests of several charges, since a denial by one of them tells nothing of the others' states; and a cost above the capacity
// of a key with tokens left, since how many is not known.
//
// # How long
//
// The store decided at some instant after it was sent the request, so the wait is counted from the instant before: it ends here no later than
// there, and earlier by no more than the call took. A five hundredth is taken off on top, since clocks may run at different rates.
// The answers carry that error: At and both waits are off by at most the time that the call took.
//
// What others do to the counter (a refund, a reset, other numbers for the limit, a step of the store's clock) is seen after at most
// [Config.MaxStaleness]. What is done through the Store is seen at once: a counter is forgotten when a Refund or Reset of it
// returns, when it is charged, when it is asked about under other numbers, and when the store says that there are tokens after all. A denial that
// was under way meanwhile is not remembered. Forgotten is what a call may have done that returned an error; should a store do it only later,
// that counts as done by others.
//
// A denial that is answered here does not reach the store, which would have done two things at it: drop what is over from a sliding log, so
// that it stays gone under a longer period; and move a counter to where its clock has stepped back to. The next request that is asked does it.
//
// # Where to put it
//
// Outside of a [headgate.Guard], as above: what is answered here says nothing about the health of the store, and a denial still holds
// while the store is away. Inside of a store that keeps tokens back, such as a lease, so that what it gives back passes through here.
package denial
