// Package lease decides most requests of a shared limit in process, and never lets through more than a bound that it states.
//
// A [Store] stands before another store. It takes tokens from it in blocks, as many as the demand of this process will use up soon, and
// spends them without asking again. A block is a lease: what is not spent when its time is over is not spent at all, and what is left when
// nobody asks any more is given back. Where little is left in the store, or it denies, requests are decided one by one, by the store.
//
// # The bound
//
// With L = [Config.Lifetime], in whole microseconds, over any interval d and any number of processes:
//
//   - TokenBucket: granted <= Burst + Count*(d+L)/Period, rounded down: Count*L/Period more than without leases.
//   - FixedWindow, AlignedWindow: at most Count in a window, as without leases: a lease ends with the window in which it was taken.
//   - SlidingWindow: at most Count in an aligned window, at most 2*Count in any Period: one more than without leases.
//   - SlidingLog is not leased: what it promises of any window, to the token, no lease can keep. Its charges go to the store one by one.
//
// This holds because every token that is spent was granted by the store before, and less than L before: a lease begins, by the monotonic
// clock of this process, before the store was asked for it, so it ends too early and never too late. docs/leases.md has the argument, and
// says what it takes for granted.
//
// # Use
//
// Put it outside of the [headgate.Guard], which then bounds and counts its calls, while tokens that are held are spent whether the store
// answers or not:
//
//	shared, err := redisstore.New(client, redisstore.Config{})
//	guard, err := headgate.NewGuard(shared, headgate.GuardConfig{})
//	leases, err := lease.New(guard, lease.Config{})
//	defer leases.Close(ctx)
//	limiter, err := headgate.New(leases, limits, headgate.Config{})
//
// A decision out of a lease has the Source [headgate.FromLease]. A denial is always the store's, and exact.
package lease
