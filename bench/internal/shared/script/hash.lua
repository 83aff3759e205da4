-- A token bucket in a hash for each key, as it is often written: two commands write, and a denied request writes too.
-- KEYS[1]: the bucket. ARGV: capacity, tokens a second, tokens wanted. Reply: {1 or 0, milliseconds to wait}.
local capacity, rate, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local state = redis.call('HMGET', KEYS[1], 'tokens', 'ts')
local tokens, since = tonumber(state[1]) or capacity, tonumber(state[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - since) * rate / 1000)
local allowed, wait = 0, 0
if tokens >= wanted then
	tokens, allowed = tokens - wanted, 1
else
	wait = math.ceil((wanted - tokens) * 1000 / rate)
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'ts', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity * 1000 / rate) + 1000)
return {allowed, wait}
