-- Keeps the list of the replicas that are alive, by the server's clock.
--
-- KEYS   1  a sorted set: the replicas' ids, each with the microsecond at which it is taken for gone
-- ARGV   1  the id of the caller; 2  microseconds for which it is alive from now, 0 = it leaves
-- Reply  the number of replicas that are alive now, negative where the caller was not among them
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local ttl = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if ttl > 0 then
  -- After time stepped back, those who were alive would stay so for as long as the step, and who crashed too.
  local ahead = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now + ttl), '+inf')
  for i = 1, #ahead do redis.call('ZADD', KEYS[1], now + ttl, ahead[i]) end
  local new = redis.call('ZADD', KEYS[1], now + ttl, ARGV[1])
  redis.call('PEXPIRE', KEYS[1], math.ceil(ttl / 1000) + 1000)
  if new == 1 then return -redis.call('ZCARD', KEYS[1]) end
else
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return redis.call('ZCARD', KEYS[1])
