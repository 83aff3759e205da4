-- Records, or checks, how many shards the state under a prefix lies in: stores that disagreed would split every budget.
--
-- KEYS   1  the record
-- ARGV   1  number of shards; 2  milliseconds for which state may go on to matter
-- Reply  the number of shards recorded
local recorded = redis.call('GET', KEYS[1])
if not recorded then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return ARGV[1]
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return recorded
