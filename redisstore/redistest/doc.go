// Package redistest gives a test its own real Redis: one server, a cluster, or a primary with a replica and three sentinels, on free
// ports of the loopback interface, with nothing kept on disk, and ended with the test.
//
//	func TestTake(t *testing.T) {
//		server := redistest.Start(t)
//		store, err := redisstore.New(server.Client(), redisstore.Config{})
//		...
//		server.Pause() // Redis hangs: what does the store do?
//	}
//
// It needs the program redis-server, 6.2 or newer, in the PATH; the environment variable REDISTEST_SERVER names another one, such as
// valkey-server. Where the program is missing the test fails: it is never skipped.
//
// What a server logs is shown when its test fails. Servers may be started from any number of parallel tests. The methods of a started
// server may be used from any goroutine, but those that can fail the test end the goroutine that called them, as [testing.T.Fatal] does.
package redistest
