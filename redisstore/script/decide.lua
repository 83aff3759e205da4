-- Decides a batch of requests in one step, at one instant of the server's clock.
--
-- Reads everything, decides each request in order against what the earlier ones left, writes everything. A request is all or nothing.
-- What is computed here is what package internal/algorithm computes, on whole numbers below 2^53: instants and durations are
-- microseconds. docs/redis.md describes how state lies in Redis.
--
-- KEYS   for each table its two hashes, of even and of odd generations; then a sorted set for each sliding log
-- ARGV   1  '>I1I4I2I2' mode (0 decide, 1 sweep), number of shards, number of tables, number of logs
--        2  for each table, those without fields last, '>I7I2I2I2': length of a generation, shard, number of fields, how many of
--           them, the first, belong to limits with a name, whose state may lie in another table of the same shard if the limit's
--           numbers were other ones before
--        3  for each limit '>I1I7I7I7I7': algorithm, count, period, capacity, life
--        4  for each request '>I1I2' verb (1 take, 2 check, 3 refund, 4 reset) and number of charges, and for each charge
--           '>I2I2I7I7': field or, past the last field, log; limit; cost; for a refund the instant at which it was taken, or 0
--        5  the fields, table by table
-- Reply  { now, one byte '1' or '0' for each request, then for each charge of a take or check, in order: its state after the request
--          was decided, '' if never used; of a sliding log '>I7I7I7' tokens left, time to retry, time to reset }
--        For a sweep { now, number of hashes freed }.
-- A state is '>I7I6I4I5' or, with numbers that do not fit, '>I7I6I7I7': instant of the last write, life, A, B as in algorithm.State.
--
-- Every function and table that is made here is made anew for each call, and costs as much as the arithmetic of a decision. So what a
-- plain take does not need is made inside the function that first needs it.

local call, pack, read = redis.call, struct.pack, struct.unpack
local floor, min, max = math.floor, math.min, math.max

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local mode, shards, ntables, nlogs = read('>I1I4I2I2', ARGV[1])

-- Tables. Each keeps the fields of one shard whose limits live about equally long, in two hashes. A generation is a stretch of time; what
-- is written in one goes to the hash of its parity. The field '#' of a hash is its label: 'c' for the generation under way or 'p' for
-- the one before, the generation's number, the number of shards. What has any other label is older than a generation.

local tables, fields, rest = {}, 0, 1
-- Reads the next table of ARGV[2], which rest points to.
local function nextTable()
  local t = #tables + 1
  local length, shard, count, named
  length, shard, count, named, rest = read('>I7I2I2I2', ARGV[2], rest)
  tables[t] = {
    even = KEYS[2 * t - 1], odd = KEYS[2 * t], -- its hashes
    length = length, shard = shard,
    base = fields, count = count, named = named, -- its fields are those after base
    current = false, former = false,         -- the hash of the generation under way and of the one before, once known
    hasCurrent = false, hasFormer = false,   -- whether they hold what these names say
    generation = false, begun = false,       -- the generation under way; whether both labels say so already
    writes = false,                          -- what is to be written, as arguments of HSET
  }
  fields = fields + count
  return count
end
while #tables < ntables and nextTable() > 0 do end

local otherwise -- the number of shards of a store that is configured otherwise

-- The part that few calls need: what to do at the edges of generations, when clocks step, and for limits whose numbers have changed.
local settle, begin, fetch, search
local function needTables()
  if settle then return end
  while #tables < ntables do nextTable() end

  local function generationOf(label, parity)
    if not label then return -1 end
    local g, n = string.match(label, '^[cp](%d+)/(%d+)$')
    if g and tonumber(n) ~= shards then otherwise = n end
    g = tonumber(g)
    if g and g % 2 == parity then return g end
    return -1
  end

  -- Works out which hash is which from the two labels. Time may have stepped back: then a label is ahead of the clock, and its
  -- generation goes on. What is ahead by more than two is brought back to the next one or the one after, of the same parity, so that
  -- all of it can still be read for at least the length of a generation.
  settle = function(T)
    local evenLabel, oddLabel = call('HGET', T.even, '#'), call('HGET', T.odd, '#')
    local gen = floor(now / T.length)
    local even, odd = generationOf(evenLabel, 0), generationOf(oddLabel, 1)
    local top, shift = max(even, odd), 0
    if top > gen + 2 then shift = top - gen - 2 + (top - gen) % 2 end
    if top > gen then gen = top - shift end
    local mine, other = even, odd
    T.current, T.former = T.even, T.odd
    if gen % 2 == 1 then
      mine, other = odd, even
      T.current, T.former = T.odd, T.even
    end
    T.generation = gen
    T.hasCurrent, T.hasFormer = mine - shift == gen, other - shift == gen - 1
    local label = 'c' .. gen .. '/' .. shards
    T.begun = shift == 0 and T.hasCurrent and T.hasFormer and (evenLabel == label or oddLabel == label)
  end

  -- Labels both hashes for the generation under way, frees what is older, and sees to it that neither can stay for ever: they go some
  -- time after all in them has stopped to matter, so that the sweep can free them first.
  begin = function(T)
    if not T.hasCurrent then call('UNLINK', T.current) end
    if not T.hasFormer then call('UNLINK', T.former) end
    call('HSET', T.current, '#', 'c' .. T.generation .. '/' .. shards)
    call('HSET', T.former, '#', 'p' .. (T.generation - 1) .. '/' .. shards)
    local ttl = math.ceil(((T.generation + 2) * T.length - now + max(T.length, 600000000)) / 1000)
    call('PEXPIRE', T.current, ttl)
    call('PEXPIRE', T.former, ttl)
  end
end

if mode == 1 then
  needTables()
  local freed = 0
  for t = 1, ntables do settle(tables[t]) end
  if otherwise then return redis.error_reply('HEADGATE ' .. otherwise) end
  for t = 1, ntables do
    local T = tables[t]
    if not T.hasCurrent then freed = freed + call('UNLINK', T.current) end
    if not T.hasFormer then freed = freed + call('UNLINK', T.former) end
    if T.hasCurrent and call('PTTL', T.current) == -1 or T.hasFormer and call('PTTL', T.former) == -1 then begin(T) end
  end
  return { now, freed }
end

-- States: what each field holds, by the number of the field. at is nil for one never used.

local at, life, a, b = {}, {}, {}, {}
local packed = {}          -- the state as it is stored, where that is known
local dirty, changed = {}, {} -- whether it must be written; those that must, in order
local found                -- the other table that it was found in

local function set(i, value)
  if #value == 22 then
    at[i], life[i], a[i], b[i] = read('>I7I6I4I5', value)
  elseif #value == 27 then
    at[i], life[i], a[i], b[i] = read('>I7I6I7I7', value)
  else
    return
  end
  packed[i] = value
end

local function stored(i)
  local value = packed[i]
  if value then return value end
  if not at[i] then return '' end
  if a[i] < 4294967296 and b[i] < 1099511627776 then
    value = pack('>I7I6I4I5', at[i], life[i], a[i], b[i])
  else
    value = pack('>I7I6I7I7', at[i], life[i], a[i], b[i])
  end
  packed[i] = value
  return value
end

local function touch(i)
  packed[i] = nil
  if not dirty[i] then
    dirty[i] = true
    changed[#changed + 1] = i
  end
end

-- Reads all fields of a table: one HMGET where they are all in the hash of the generation under way.
local function load(T)
  local gen = floor(now / T.length)
  local here, there = T.even, T.odd
  if gen % 2 == 1 then here, there = there, here end
  local base, n = T.base, T.count
  local values = call('HMGET', here, '#', unpack(ARGV, base + 5, base + n + 4))
  local missing
  if values[1] == 'c' .. gen .. '/' .. shards then
    T.generation, T.current, T.former, T.hasCurrent, T.begun = gen, here, there, true, true
    for j = 1, n do
      local value = values[j + 1]
      if value then
        set(base + j, value)
      else
        missing = missing or {}
        missing[#missing + 1] = base + j
      end
    end
    if not missing then return end
  else
    missing = {}
    for j = 1, n do missing[j] = base + j end
  end
  needTables()
  if not fetch then
    -- Sets those of the fields numbered in list that a hash holds. Returns the others.
    fetch = function(hash, list)
      local names, rest = {}, {}
      for j = 1, #list do names[j] = ARGV[4 + list[j]] end
      local got = call('HMGET', hash, unpack(names))
      for j = 1, #list do
        if got[j] then set(list[j], got[j]) else rest[#rest + 1] = list[j] end
      end
      return rest
    end
    -- Looks for what is missing in the other tables of the shard.
    search = function(T, list)
      found = found or {}
      for u = 1, ntables do
        local U = tables[u]
        if U ~= T and U.shard == T.shard and #list > 0 then
          settle(U)
          local rest = list
          if U.hasCurrent then rest = fetch(U.current, rest) end
          if U.hasFormer and #rest > 0 then rest = fetch(U.former, rest) end
          for j = 1, #list do
            if at[list[j]] then found[list[j]] = U end
          end
          list = rest
        end
      end
    end
  end
  if T.begun then
    T.hasFormer = call('HGET', there, '#') == 'p' .. (gen - 1) .. '/' .. shards
  else
    settle(T)
    if T.hasCurrent then missing = fetch(T.current, missing) end
  end
  if T.hasFormer and #missing > 0 then missing = fetch(T.former, missing) end
  if T.named > 0 and #missing > 0 then
    local sought = {}
    for j = 1, #missing do
      if missing[j] <= base + T.named then sought[#sought + 1] = missing[j] end
    end
    search(T, sought)
  end
end

for t = 1, #tables do
  if tables[t].count > 0 then load(tables[t]) end
end
if otherwise then return redis.error_reply('HEADGATE ' .. otherwise) end

local limits = {}
do
  local pos = 1
  for l = 1, #ARGV[3] / 29 do
    local kind, tokens, period, capacity, lives
    kind, tokens, period, capacity, lives, pos = read('>I1I7I7I7I7', ARGV[3], pos)
    limits[l] = { kind = kind, tokens = tokens, period = period, capacity = capacity, life = lives }
  end
end

-- Sliding logs, by the number of the log. The entries are members with their instant as score, in the log's own time, which is the
-- store's plus an offset. Three members with scores below zero keep the rest: -1-u of 'u' the sum of the entries, -1-o of 'o' the
-- offset, -1-p of 'p' the period at the last grant.

local alive, grantLog, refundLog, forget, logState, saveLogs
if nlogs > 0 then
  local logs = {}
  for j = 1, nlogs do
    local log = { key = KEYS[2 * ntables + j], sum = 0, offset = 0, period = 0, newest = false, serial = 0, unsaved = false }
    local meta = call('ZRANGEBYSCORE', log.key, '-inf', '(0', 'WITHSCORES')
    for k = 1, #meta, 2 do
      local value = -1 - tonumber(meta[k + 1])
      if meta[k] == 'u' then log.sum = value elseif meta[k] == 'o' then log.offset = value elseif meta[k] == 'p' then log.period = value end
    end
    logs[j] = log
  end

  -- Finds the newest entry: its instant, and its number among those of one instant.
  local function loadNewest(log)
    local last = call('ZRANGE', log.key, -1, -1)
    log.newest = false
    if last[1] and #last[1] == 15 then log.newest, log.serial = read('>I7I4', last[1]) end
  end
  for j = 1, nlogs do
    if logs[j].period > 0 then loadNewest(logs[j]) end
  end

  forget = function(j)
    local log = logs[j]
    call('UNLINK', log.key)
    log.sum, log.offset, log.period, log.newest, log.unsaved = 0, 0, 0, false, false
  end

  -- Writes the three members and, if there is one, an entry.
  local function save(log, score, member)
    if member then
      call('ZADD', log.key, -1 - log.sum, 'u', -1 - log.offset, 'o', -1 - log.period, 'p', score, member)
    else
      call('ZADD', log.key, -1 - log.sum, 'u', -1 - log.offset, 'o', -1 - log.period, 'p')
    end
    log.unsaved = false
  end

  -- Returns the log's time and the sum of the entries that still count. With write it keeps what it found out.
  alive = function(j, period, write)
    local log = logs[j]
    if not log.newest then return now, 0 end
    local offset = max(log.offset, log.newest - now)
    local t, used = now + offset, 0
    if t < log.newest + log.period then
      used = log.sum
      local expired = call('ZRANGEBYSCORE', log.key, 0, t - period)
      for k = 1, #expired do
        local _, _, n = read('>I7I4I4', expired[k])
        used = used - n
      end
      if write and #expired > 0 and used > 0 then call('ZREMRANGEBYSCORE', log.key, 0, t - period) end
    end
    if write and used == 0 then
      forget(j)
      return now, 0
    elseif write and (offset ~= log.offset or used ~= log.sum) then
      log.offset, log.sum, log.unsaved = offset, used, true
    end
    return t, used
  end

  -- Returns how long until tokens of those that count have expired, at least one and at most all of them.
  local function expiry(log, period, t, tokens)
    local skip = 0
    while true do
      local some = call('ZRANGEBYSCORE', log.key, string.format('(%.0f', max(t - period, 0)), '+inf', 'LIMIT', skip, min(tokens, 500))
      for k = 1, #some do
        local entry, _, n = read('>I7I4I4', some[k])
        tokens = tokens - n
        if tokens <= 0 then return entry + period - t end
      end
      if #some == 0 then return period end
      skip = skip + #some
    end
  end

  -- Records cost tokens at t. Returns the log's part of the reply.
  grantLog = function(j, L, t, used, cost)
    local log = logs[j]
    log.serial = log.newest == t and log.serial + 1 or 0
    log.sum, log.newest, log.period = log.sum + cost, t, L.period
    save(log, t, pack('>I7I4I4', t, log.serial, cost))
    call('PEXPIRE', log.key, math.ceil(L.period / 1000) + 1000)
    return pack('>I7I7I7', L.tokens - used - cost, 0, L.period)
  end

  -- Returns the log's part of the reply for a request that charges it nothing.
  logState = function(j, L, t, used, cost)
    local log, retry, reset = logs[j], 0, 0
    if used > 0 then reset = log.newest + min(L.period, log.period) - t end
    local lack = used + cost - L.tokens
    if cost > 0 and lack > 0 and cost <= L.tokens then retry = min(reset, expiry(log, L.period, t, lack)) end
    return pack('>I7I7I7', max(0, L.tokens - used), retry, reset)
  end

  refundLog = function(j, period, tokens, taken)
    local log = logs[j]
    local _, used = alive(j, period, true)
    if not log.newest then return end
    local from, to = 0, '+inf'
    if taken > 0 then
      from = taken + log.offset
      to = from
    end
    while used > 0 and tokens > 0 do
      local some = call('ZRANGEBYSCORE', log.key, from, to, 'LIMIT', 0, 500)
      if #some == 0 then break end
      for k = 1, #some do
        local entry, number, n = read('>I7I4I4', some[k])
        local back = min(tokens, n)
        if back > 0 then
          call('ZREM', log.key, some[k])
          if back < n then call('ZADD', log.key, entry, pack('>I7I4I4', entry, number, n - back)) end
        end
        tokens, used = tokens - back, used - back
      end
    end
    if used == 0 then return forget(j) end
    log.sum = used
    save(log)
    loadNewest(log)
  end

  saveLogs = function()
    for j = 1, nlogs do
      local log = logs[j]
      if log.unsaved then save(log) end
      if log.newest and call('PTTL', log.key) == -1 then call('PEXPIRE', log.key, math.ceil(log.period / 1000) + 1000) end
    end
  end
end

-- Returns floor(x * y / z) and the remainder, for x below 2^52, y and z below 2^48, exactly.
local function muldiv(x, y, z)
  local product = x * y
  if product < 4503599627370496 then
    local q = floor(product / z)
    return q, product - q * z
  end
  local q, r, unit = 0, 0, 281474976710656 -- 16^12: long multiplication and division by digits of x to the base 16
  while unit >= 1 do
    local digit = floor(x / unit)
    x, unit = x - digit * unit, unit / 16
    local part = r * 16 + digit * y
    local d = floor(part / z)
    r = part - d * z
    if r < 0 then d, r = d - 1, r + z elseif r >= z then d, r = d + 1, r - z end
    q = q * 16 + d
  end
  return q, r
end

-- Returns what field i holds at now under limit L. Of a bucket: the tokens in use, whole and the part of one. Of a window: the tokens
-- granted in it, and its end. Of a sliding window: those granted in the window under way and in the one before. With write a state
-- from the future, which was written before time stepped back, is moved to now.
local function inUse(i, L, write)
  local kind, period, s = L.kind, L.period, at[i]
  local lived = 0
  if s then
    lived = life[i]
    if lived > L.life then lived = L.life end
    if now < s then
      s = now
      if write then
        at[i] = now
        touch(i)
      end
    end
    if now - s >= lived then s = nil end -- as if never used
  end
  if kind == 0 then
    if not s then return 0, 0 end
    local whole, part = a[i], b[i]
    if part >= period then part = period - 1 end
    if whole >= L.capacity then whole, part = L.capacity, 0 end
    local q, r = muldiv(L.tokens, now - s, period)
    whole, part = whole - q, part - r
    if part < 0 then whole, part = whole - 1, part + period end
    if whole < 0 then return 0, 0 end
    return whole, part
  elseif kind == 1 then
    if not s or a[i] == 0 then return 0, now + period end
    return a[i], s + lived
  end
  local index = floor(now / period)
  if kind == 2 then
    if not s or floor(s / period) ~= index then return 0, (index + 1) * period end
    return a[i], (index + 1) * period
  end
  local cur, prev = 0, 0
  if s then
    local windows = index - floor(s / period)
    if windows == 0 then cur, prev = a[i], b[i] elseif windows == 1 then prev = a[i] end
    if cur > L.tokens then cur, prev = 0, L.tokens end
    if prev > L.tokens then prev = L.tokens end
  end
  return cur, prev
end

local function write(i, newA, newB, newLife)
  at[i], life[i], a[i], b[i] = now, newLife, newA, newB
  touch(i)
end

-- Says whether field i has room for cost tokens, and what it would hold then: A, B and life.
local function room(i, L, cost)
  local x, y = inUse(i, L, cost > 0)
  local kind, period = L.kind, L.period
  if kind == 0 then
    local used = x + cost
    if y > 0 then return used + 1 <= L.capacity, used, y, L.life end
    return used <= L.capacity, used, y, L.life
  elseif kind == 3 then
    local elapsed = now - floor(now / period) * period
    local weight, rest = muldiv(y, period - elapsed, period)
    if rest > 0 then weight = weight + 1 end
    return cost == 0 or x + weight + cost <= L.tokens, x + cost, y, L.life - elapsed
  end
  return cost == 0 or x + cost <= L.tokens, x + cost, 0, y - now
end

local refund
local function needRefund()
  refund = function(i, L, amount, taken)
    if not at[i] then return end
    local x, y = inUse(i, L, true)
    local kind, period = L.kind, L.period
    if now - at[i] >= min(life[i], L.life) then return end
    if kind == 0 then
      x = x - amount
      if x < 0 then x, y = 0, 0 end
      return write(i, x, y, L.life)
    elseif kind == 1 then
      if a[i] == 0 or taken > 0 and taken < y - period then return end
      return write(i, max(0, x - amount), 0, y - now)
    end
    local index, when = floor(now / period), floor(taken / period)
    if kind == 2 then
      if floor(at[i] / period) ~= index or taken > 0 and when ~= index then return end
      return write(i, max(0, x - amount), 0, y - now)
    end
    if taken == 0 or when == index then
      x = max(0, x - amount)
    elseif when == index - 1 then
      y = max(0, y - amount)
    end
    write(i, x, y, L.life - (now - index * period))
  end
end

-- Requests.

local reply, verdicts = { now, '' }, {}
local charge, pending = {}, {} -- of the request in hand: four and three numbers for each charge

local function take(n, commit)
  local all = true
  for c = 1, n do
    local i, L, cost = charge[4 * c - 3], charge[4 * c - 2], charge[4 * c - 1]
    local ok
    if i <= fields then
      ok, pending[3 * c - 2], pending[3 * c - 1], pending[3 * c] = room(i, L, cost)
    else
      local t, used = alive(i - fields, L.period, cost > 0)
      pending[3 * c - 2], pending[3 * c - 1] = t, used
      ok = cost == 0 or used + cost <= L.tokens
    end
    all = all and ok
  end
  for c = 1, n do
    local i, L, cost = charge[4 * c - 3], charge[4 * c - 2], charge[4 * c - 1]
    local charged = all and commit and cost > 0
    local x, y = pending[3 * c - 2], pending[3 * c - 1]
    if i <= fields then
      if charged then write(i, x, y, pending[3 * c]) end
      reply[#reply + 1] = stored(i)
    else
      reply[#reply + 1] = (charged and grantLog or logState)(i - fields, L, x, y, cost)
    end
  end
  return all
end

local program, pos = ARGV[4], 1
while pos <= #program do
  local verb, n
  verb, n, pos = read('>I1I2', program, pos)
  for k = 1, 4 * n, 4 do
    local l
    charge[k], l, charge[k + 2], charge[k + 3], pos = read('>I2I2I7I7', program, pos)
    charge[k + 1] = limits[l]
  end
  local ok = true
  if verb <= 2 then
    ok = take(n, verb == 1)
  else
    for k = 1, 4 * n, 4 do
      local i, L, cost, taken = charge[k], charge[k + 1], charge[k + 2], charge[k + 3]
      if verb == 4 and i > fields then
        forget(i - fields)
      elseif verb == 4 then
        at[i] = nil
        touch(i)
      elseif cost > 0 and i > fields then
        refundLog(i - fields, L.period, cost, taken)
      elseif cost > 0 then
        if not refund then needRefund() end
        refund(i, L, cost, taken)
      end
    end
  end
  verdicts[#verdicts + 1] = ok and '1' or '0'
end
reply[2] = table.concat(verdicts)

-- Writes: one HSET for each table that changed. What must go, goes from both hashes; of a limit with a name, from all tables that it may
-- have been in.

if nlogs > 0 then saveLogs() end

local function remove(i, T)
  needTables()
  for u = 1, ntables do
    local U = tables[u]
    local out = found and U == found[i]
    if not at[i] then out = out or U == T or i <= T.base + T.named and U.shard == T.shard end
    if out then
      call('HDEL', U.even, ARGV[4 + i])
      call('HDEL', U.odd, ARGV[4 + i])
    end
  end
end

local t = 1
for k = 1, #changed do
  local i = changed[k]
  local T = tables[t]
  while i <= T.base or i > T.base + T.count do
    t = t % #tables + 1
    T = tables[t]
  end
  if not at[i] or found and found[i] then remove(i, T) end
  if at[i] then
    local w = T.writes
    if not w then
      w = {}
      T.writes = w
    end
    w[#w + 1] = ARGV[4 + i]
    w[#w + 1] = stored(i)
  end
end
for u = 1, #tables do
  local T = tables[u]
  local w = T.writes
  if w then
    if not T.begun then
      begin(T)
    elseif call('PTTL', T.current) == -1 then
      needTables()
      if not T.hasFormer then settle(T) end
      begin(T)
    end
    if #w <= 4000 then
      call('HSET', T.current, unpack(w))
    else
      for k = 1, #w, 4000 do call('HSET', T.current, unpack(w, k, min(k + 3999, #w))) end
    end
  end
end
return reply
