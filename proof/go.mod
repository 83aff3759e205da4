module github.com/headgate/headgate/proof

go 1.26.0

require (
	github.com/headgate/headgate v0.0.0
	github.com/headgate/headgate/redisstore v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
