package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A generator starts requests when they are due.
type generator struct {
	cfg      Config
	start    time.Time
	recorder *recorder
	seen     []bool // keys that were asked for
	asked    int    // how many those are
	inFlight atomic.Int64
	requests sync.WaitGroup
	ctx      context.Context // of the requests
	cancel   context.CancelFunc
}

func newGenerator(cfg Config) *generator {
	cfg.KeyCount = max(cfg.KeyCount, 1)
	if cfg.Keys == nil {
		cfg.Keys = func() int { return 0 }
	}
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
	}
	g := &generator{cfg: cfg, recorder: newRecorder(cfg.Warmup), seen: make([]bool, cfg.KeyCount), start: time.Now()}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// generate starts requests until the run is over or ctx ends, and returns how long requests fell due.
func (g *generator) generate(ctx context.Context) time.Duration {
	total := g.cfg.Warmup + g.cfg.Duration
	for {
		due := g.cfg.Arrivals()
		if !g.wait(ctx, min(due, total)) {
			return min(time.Since(g.start), total)
		}
		if due >= total {
			return total
		}
		g.launch(due, g.cfg.Keys())
	}
}

// exact is the last part of a wait, for which the timers of the Go runtime are too coarse.
const exact = 2 * time.Millisecond

// wait returns true at the instant due, or at once if that is past, and false when ctx has ended.
func (g *generator) wait(ctx context.Context, due time.Duration) bool {
	for {
		left := due - time.Since(g.start)
		switch {
		case ctx.Err() != nil:
			return false
		case left <= 0:
			return true
		case left <= exact:
			g.cfg.Sleep(left)
			continue
		}
		timer := time.NewTimer(left - exact/2)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// launch starts the request that is due, or drops it. Only the goroutine of generate calls it.
func (g *generator) launch(due time.Duration, key int) {
	if g.inFlight.Load() >= int64(g.cfg.MaxInFlight) {
		g.recorder.drop(due)
		return
	}
	if due >= g.cfg.Warmup && !g.seen[key] {
		g.seen[key] = true
		g.asked++
	}
	g.inFlight.Add(1)
	g.requests.Go(func() { g.request(due, key) })
}

func (g *generator) request(due time.Duration, key int) {
	s := sample{key: key, due: due, started: time.Since(g.start)}
	g.recorder.send(s)
	ctx, cancel := context.WithTimeout(g.ctx, g.cfg.Timeout)
	s.outcome = g.cfg.Target.Do(ctx, key)
	s.ended = time.Since(g.start)
	cancel()
	s.cut = s.outcome.Verdict == Failed && g.ctx.Err() != nil
	g.recorder.record(s)
	g.inFlight.Add(-1)
}

// grace is what requests under way have to finish in when the run is interrupted.
const grace = time.Second

// drain returns when no request is under way.
func (g *generator) drain(ctx context.Context) {
	defer g.cancel()
	done := make(chan struct{})
	go func() {
		g.requests.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		g.cancel()
		<-done
	}
}

// showProgress calls Config.Progress once a second until the returned function, which waits for the last call.
func (g *generator) showProgress() (stop func()) {
	if g.cfg.Progress == nil {
		return func() {}
	}
	quit := make(chan struct{})
	var shower sync.WaitGroup
	shower.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				g.cfg.Progress(g.recorder.progress(time.Since(g.start), g.cfg.Warmup+g.cfg.Duration, g.inFlight.Load()))
			case <-quit:
				return
			}
		}
	})
	return func() {
		close(quit)
		shower.Wait()
	}
}
