// Package rls measures Envoy rate limit services over gRPC.
package rls

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/bench/internal/worker"
)

// YesJob is the name of a worker's job.
const YesJob = "rls-yes"

const (
	yesName = "a service that always says yes"

	callers     = 128
	connections = 4
	domain      = "bench"
	descriptor  = "tenant"
)

// Rows returns the rows about Envoy rate limit services.
func Rows() []trial.Row {
	return []trial.Row{
		{ID: "rls-keys", Title: "Envoy rate limit service, many keys", Measure: func(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
			return measure(ctx, tb, s, s.Keys, []report.Goal{{Column: trial.Throughput, To: report.BestPeer, Target: 2.2}, {Column: trial.Throughput, To: yesName, Target: 0.75}})
		}},
		{ID: "rls-hot", Title: "Envoy rate limit service, one hot key", Measure: func(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
			return measure(ctx, tb, s, 1, []report.Goal{{Column: trial.Throughput, To: yesName, Target: 0.85}})
		}},
	}
}

func measure(ctx context.Context, tb testing.TB, s trial.Settings, keys int, goals []report.Goal) (report.Row, error) {
	w := trial.Work{Callers: callers, Keys: trial.Tenants(keys), Sample: 8}
	row := report.Row{
		About: fmt.Sprintf("%d callers over %d connections call `ShouldRateLimit` with one descriptor, domain `%s`, key `%s`, %d values at random. Services are measured where they "+
			"are running: `-rls NAME=HOST:PORT`, with the name Headgate for Headgate's.", callers, connections, domain, descriptor, keys),
		Columns: w.Columns(),
		Goals:   goals,
	}
	yes, err := worker.Serve(ctx, tb, YesJob, nil)
	if err != nil {
		return row, err
	}
	services := append([]trial.Named{{Name: yesName, Addr: yes}}, s.RLS...)
	row.Entries = []report.Entry{{Name: yesName, Kind: report.Wall}}
	ours := false
	for _, n := range s.RLS {
		kind := report.Peer
		if n.Name == string(report.Headgate) {
			kind, ours = report.Headgate, true
		}
		row.Entries = append(row.Entries, report.Entry{Name: n.Name, Kind: kind})
	}
	seats := make([]trial.Seat, len(services))
	for i, n := range services {
		decide, err := call(tb, n.Addr)
		if err != nil {
			return row, fmt.Errorf("%s: %w", n.Name, err)
		}
		seats[i] = trial.Seat{Decide: decide, Entry: &row.Entries[i]}
	}
	err = w.Run(ctx, s, seats)
	if !ours {
		row.Entries = append(row.Entries, report.Entry{Name: string(report.Headgate), Kind: report.Headgate, Missing: "no address was given for it"})
	}
	return row, err
}

// call asks the service of an address.
func call(tb testing.TB, address string) (load.Decide, error) {
	clients := make(chan service.RateLimitServiceClient, callers)
	var all []service.RateLimitServiceClient
	for range connections {
		c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		tb.Cleanup(func() { _ = c.Close() })
		all = append(all, service.NewRateLimitServiceClient(c))
	}
	for i := range callers {
		clients <- all[i%len(all)]
	}
	return func(ctx context.Context, value string) (bool, error) {
		c := <-clients
		defer func() { clients <- c }()
		r, err := c.ShouldRateLimit(ctx, &service.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{
			{Entries: []*common.RateLimitDescriptor_Entry{{Key: descriptor, Value: value}}},
		}})
		return err == nil && r.GetOverallCode() == service.RateLimitResponse_OK, err
	}, nil
}

// yes is the service that always says so.
type yes struct {
	service.UnimplementedRateLimitServiceServer
}

func (yes) ShouldRateLimit(context.Context, *service.RateLimitRequest) (*service.RateLimitResponse, error) {
	return &service.RateLimitResponse{
		OverallCode: service.RateLimitResponse_OK,
		Statuses:    []*service.RateLimitResponse_DescriptorStatus{{Code: service.RateLimitResponse_OK}},
	}, nil
}

// Yes is the job of a worker.
func Yes(ctx context.Context, _ []byte, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.NumStreamWorkers(4))
	service.RegisterRateLimitServiceServer(server, yes{})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	return server.Serve(l)
}
