module github.com/headgate/headgate/cmd/headgate

go 1.26.0

require (
	github.com/headgate/headgate v0.0.0
	github.com/headgate/headgate/redisstore v0.0.0
)
