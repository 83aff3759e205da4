-- Decides a batch of requests in one step, at one instant of the server's clock.
--
-- Reads everything, decides each request in order against what the earlier ones left, writes everything. A request is all or nothing.
-- What is computed here is what package internal/algorithm computes, on whole numbers below 2^53: instants and durations are
-- microseconds. docs/redis.md describes how state lies in Redis.
--
-- KEYS   for each table its two hashes, of even and of odd generations; then a sorted set for each sliding log
-- ARGV   1  numbers, one after the other:
--           '>I1I2I2I2s' mode (0 decide, 1 sweep, 2 decide with resets), number of tables, of logs, of limits; '/' and the number of shards
--           for each table, those without fields last, '>I7I2I2I2': length of a generation, shard, number of fields, how many of
--           them, the first, belong to limits with a name, whose state may lie in another table of the same shard if the limit's
--           numbers were other ones before
--           for each limit '>I1I7I7I7I7': algorithm, plus 8 if it has a name; count, period, capacity, life
--           for each request '>I1I2I7': verb (1 take, 2 check, 3 refund, 4 reset, 5 give back); number of charges, one or more; how many times
--           over it is asked for, or of a refund or giving back the instant at which it was taken, or 0; and for each charge '>I2I2I7': field or,
--           past the last field, log; limit; cost
--        2  the fields, table by table, at most 2,000 in all: more than twice as many arguments Lua does not take
-- A take that is asked for n times over is n takes, one after the other: the first k are granted and the others denied. Requests that
-- are not takes, and those of sliding logs, are asked for once.
-- Giving back is a refund of what nobody has made use of: a bucket gets no token for which another one may have come in its place meanwhile.
-- Reply  a string: '>I7' now; then for each request, but resets, 'a' if it was granted as often as asked for, 'n' if not at all, else 'p'
--        and '>I4' how often; and for each of its charges a byte with the length of what follows: the state after the request was
--        decided, '' if never used; of a sliding log '>I7I7I7' tokens left, time to retry, time to reset
--        For a sweep the number of hashes freed.
-- A state is '>I7I6I4I5' or, with numbers that do not fit or after time has stepped back, '>I7I6I7I7': instant of the last write, life, A, B as in algorithm.State. Of a
-- limit without a name, whose numbers never change, it is '>I7I3I4' if they fit, without the life, which they imply: instant, A, B, or for a
-- fixed window its life in place of B.
--
-- Every function and table that is made here is made anew for each call, a record with named fields costs twice what a list does, a list more if
-- its first entries come later, and a function more the more locals it refers to. So what every call needs stands in line, in lists that
-- begin with a place, and what few need is made where they need it.

local call, pack, read, floor = redis.call, struct.pack, struct.unpack, math.floor

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local program = ARGV[1]
local mode, ntables, nlogs, nlimits, shards, pos = read('>I1I2I2I2s', program)

-- Returns floor(x * y / z) and the remainder, for x below 2^52, y and z below 2^48, exactly.
local function muldiv(x, y, z)
  local product = x * y
  if product < 4503599627370496 then
    local r = product % z
    return (product - r) / z, r
  end
  local q, r, unit = 0, 0, 281474976710656 -- 16^12: long multiplication and division by digits of x to the base 16
  while unit >= 1 do
    local digit = math.floor(x / unit)
    x, unit = x - digit * unit, unit / 16
    local part = r * 16 + digit * y
    local d = math.floor(part / z)
    r = part - d * z
    if r < 0 then d, r = d - 1, r + z elseif r >= z then d, r = d + 1, r - z end
    q = q * 16 + d
  end
  return q, r
end

-- Tables. Each keeps the fields of one shard whose limits live about equally long, in two hashes. A generation is a stretch of time; what
-- is written in one goes to the hash of its parity. The field '#' of a hash is its label: 'c' for the generation under way or 'p' for
-- the one before, the generation's number, the number of shards. What has any other label is older than a generation.

local packed, dirty = { false }, { false } -- by the number of the field: its state, or false if never used; whether it must be written
local current, last = { false }, { 0 }     -- of each table with fields: the hash of the generation under way; the number of its last field
local full, fields = 0, 0                  -- how many they are

-- Reads all fields: one HMGET a table where they are all in the hash of the generation under way.

local start = pos
local rare = mode > 0 -- whether there is more to do than that
local lasts, gen, label
for t = 1, ntables do
  local length, _, count = read('>I7I2I2', program, start + 13 * (t - 1))
  if count == 0 then break end -- those without fields are seldom needed
  if length ~= lasts then
    lasts, gen = length, floor(now / length)
    label = string.format('c%d%s', gen, shards)
  end
  local hash = KEYS[2 * t - 1 + gen % 2]
  local values = call('HMGET', hash, '#', unpack(ARGV, fields + 2, fields + count + 1))
  if values[1] == label then
    current[t] = hash
    for j = 1, count do
      local i, value = fields + j, values[j + 1]
      packed[i], dirty[i], rare = value, false, rare or not value
    end
  else
    current[t], rare = false, true
    for i = fields + 1, fields + count do packed[i], dirty[i] = false, false end
  end
  full, fields = t, fields + count
  last[t] = fields
end

-- The part that few calls need: keys that are new or not seen in this generation, the edges of generations, clocks that step, limits
-- whose numbers have changed, resets, the sweep.
local tables, begin
local found -- of the fields that were found in another table than their own: that one
if rare then
  local otherwise -- the number of shards of a store that is configured otherwise

  tables = {}
  for t = 1, ntables do
    local length, shard, count, named = read('>I7I2I2I2', program, start + 13 * (t - 1))
    local T = {
      even = KEYS[2 * t - 1], odd = KEYS[2 * t], length = length, shard = shard,
      base = t <= full and last[t] - count or 0, count = count, named = named, -- its fields are those after base
      generation = floor(now / length), -- the one under way
      begun = current[t],               -- whether both labels say so already
      missing = {},                     -- the fields that its current hash does not hold, if that is known
    }
    T.current, T.former = T.even, T.odd -- the hashes of the generation under way and of the one before
    if T.generation % 2 == 1 then T.current, T.former = T.odd, T.even end
    for i = T.base + 1, T.base + count do
      if not packed[i] then T.missing[#T.missing + 1] = i end
    end
    tables[t] = T
  end

  local function generationOf(label, parity)
    if not label then return -1 end
    local g, n = string.match(label, '^[cp](%d+)(/%d+)$')
    if g and n ~= shards then otherwise = string.sub(n, 2) end
    g = tonumber(g)
    if g and g % 2 == parity then return g end
    return -1
  end

  -- Works out which hash is which from the two labels. Time may have stepped back: then a label is ahead of the clock, and its
  -- generation goes on. What is ahead by more than two is brought back to the next one or the one after, of the same parity, so that
  -- all of it can still be read for at least the length of a generation.
  local function settle(T)
    local evenLabel, oddLabel = call('HGET', T.even, '#'), call('HGET', T.odd, '#')
    local gen = floor(now / T.length)
    local even, odd = generationOf(evenLabel, 0), generationOf(oddLabel, 1)
    local top, shift = math.max(even, odd), 0
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
    T.ahead = shift > 0
    T.over = (evenLabel or oddLabel) and not (T.hasCurrent and T.hasFormer)
    local label, former = evenLabel, oddLabel
    if gen % 2 == 1 then label, former = oddLabel, evenLabel end
    T.begun = label == 'c' .. gen .. shards and former == 'p' .. (gen - 1) .. shards
  end

  -- Labels both hashes for the generation under way and frees what is older. Neither can stay for ever: they go some time after all in them
  -- has stopped to matter, so that the sweep can free them first.
  begin = function(T)
    if not T.hasCurrent then call('UNLINK', T.current) end
    if not T.hasFormer then call('UNLINK', T.former) end
    call('HSET', T.current, '#', 'c' .. T.generation .. shards)
    call('HSET', T.former, '#', 'p' .. (T.generation - 1) .. shards)
    local ttl = math.ceil(((T.generation + 2) * T.length - now + math.max(T.length, 600000000)) / 1000)
    call('PEXPIRE', T.current, ttl)
    call('PEXPIRE', T.former, ttl)
  end

  if mode == 1 then
    for t = 1, ntables do settle(tables[t]) end
    if otherwise then return redis.error_reply('HEADGATE ' .. otherwise) end
    local freed = 0
    for t = 1, ntables do
      local T = tables[t]
      if not T.hasCurrent then freed = freed + call('UNLINK', T.current) end
      if not T.hasFormer then freed = freed + call('UNLINK', T.former) end
      if T.ahead or T.hasCurrent and call('PTTL', T.current) == -1 or T.hasFormer and call('PTTL', T.former) == -1 then begin(T) end
    end
    return freed
  end

  -- Reads those of the fields numbered in list that a hash holds. Returns the others.
  local function fetch(hash, list)
    local names, others = {}, {}
    for j = 1, #list do names[j] = ARGV[1 + list[j]] end
    local values = call('HMGET', hash, unpack(names))
    for j = 1, #list do
      packed[list[j]] = values[j]
      if not values[j] then others[#others + 1] = list[j] end
    end
    return others
  end

  -- Looks for what is missing in the other tables of the shard.
  local function search(T, list)
    found = found or {}
    for u = 1, ntables do
      local U = tables[u]
      if U ~= T and U.shard == T.shard and #list > 0 then
        settle(U)
        local others = list
        if U.hasCurrent then others = fetch(U.current, others) end
        if U.hasFormer and #others > 0 then others = fetch(U.former, others) end
        for j = 1, #list do
          if packed[list[j]] then found[list[j]] = U end
        end
        list = others
      end
    end
  end

  for t = 1, full do
    local T = tables[t]
    local missing = T.missing
    if #missing > 0 then
      if current[t] then -- the hash was the right one, and only the other may hold them
        T.hasCurrent, T.hasFormer = true, call('HGET', T.former, '#') == 'p' .. (T.generation - 1) .. shards
      else
        settle(T)
        if T.hasCurrent then missing = fetch(T.current, missing) end
      end
      current[t] = T.current
      if T.hasFormer and #missing > 0 then missing = fetch(T.former, missing) end
      if T.named > 0 and #missing > 0 then
        local sought = {}
        for j = 1, #missing do
          if missing[j] <= T.base + T.named then sought[#sought + 1] = missing[j] end
        end
        if #sought > 0 then search(T, sought) end
      end
    end
  end
  if otherwise then return redis.error_reply('HEADGATE ' .. otherwise) end
end

pos = start + 13 * ntables
local KIND, NAMED, TOKENS, PERIOD, CAPACITY, LIFE = 1, 2, 3, 4, 5, 6 -- of a limit
local limits = { false }
for l = 1, nlimits do
  local kind, tokens, period, capacity, lives
  kind, tokens, period, capacity, lives, pos = read('>I1I7I7I7I7', program, pos)
  limits[l] = { kind % 8, kind >= 8, tokens, period, capacity, lives }
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
    local offset = math.max(log.offset, log.newest - now)
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
      local some = call('ZRANGEBYSCORE', log.key, string.format('(%.0f', math.max(t - period, 0)), '+inf', 'LIMIT', skip, math.min(tokens, 500))
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
    log.sum, log.newest, log.period = log.sum + cost, t, L[PERIOD]
    save(log, t, pack('>I7I4I4', t, log.serial, cost))
    call('PEXPIRE', log.key, math.ceil(L[PERIOD] / 1000) + 1000)
    return pack('>I7I7I7', L[TOKENS] - used - cost, 0, L[PERIOD])
  end

  -- Returns the log's part of the reply for a request that charges it nothing.
  logState = function(j, L, t, used, cost)
    local log, retry, reset = logs[j], 0, 0
    if used > 0 then reset = log.newest + math.min(L[PERIOD], log.period) - t end
    local lack = used + cost - L[TOKENS]
    if cost > 0 and lack > 0 and cost <= L[TOKENS] then retry = math.min(reset, expiry(log, L[PERIOD], t, lack)) end
    return pack('>I7I7I7', math.max(0, L[TOKENS] - used), retry, reset)
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
        local back = math.min(tokens, n)
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

-- Requests. What is in use of a field at now, under the charge's limit, is: of a bucket, x tokens and a part of one, y/period; of a window,
-- x tokens, and y is its end; of a sliding window, x tokens granted in the window under way and y in the one before.

local reply, nreply = { pack('>I7', now), '', '', '' }, 1
local charges -- of the request in hand, if it has several: seven for each charge, its number of the field to the instant of its state

while pos <= #program do
  -- Of the charge in hand: field, limit, cost; then A, B, life and instant of the state to be kept, if life is not false.
  local i, L, cost, x, y, kept, at
  local verb, n, times, l
  verb, n, times, i, l, cost, pos = read('>I1I2I7I2I2I7', program, pos)
  local taken, unused = 0, verb == 5
  if verb == 3 or unused then verb, taken, times = 3, times, 1 end
  local grants = times

  for c = 1, 7 * n, 7 do
    if c > 1 then i, l, cost, pos = read('>I2I2I7', program, pos) end
    L = limits[l]
    local kind, period, room = L[KIND], L[PERIOD], false
    x, y, kept, at = 0, 0, false, now
    if i > fields then
      if verb <= 2 then
        x, y = alive(i - fields, period, cost > 0)
        room = L[TOKENS] - y
      elseif verb == 3 and cost > 0 then
        refundLog(i - fields, period, cost, taken)
      elseif verb == 4 then
        forget(i - fields)
      end
    elseif verb == 4 then
      packed[i], dirty[i] = false, true
    else
      -- The state: s is the instant from which it has aged, or false where it is as if never used.
      local value, s, lived, A, B = packed[i], false, 0, 0, 0
      local size = value and #value
      if size == 14 then
        s, A, B = read('>I7I3I4', value)
        lived = kind == 1 and B or kind == 0 and L[LIFE] or L[LIFE] - s % period
      elseif size == 22 then
        s, lived, A, B = read('>I7I6I4I5', value)
      elseif size == 27 then
        s, lived, A, B = read('>I7I6I7I7', value)
      else
        packed[i] = false
      end
      local live = lived
      if s then
        if now < s then -- it was written before time stepped back, and ages on from now
          s = now
          if cost > 0 then packed[i], dirty[i] = pack('>I7I6I7I7', now, lived, A, kind == 1 and 0 or B), true end
        end
        if live > L[LIFE] then live = L[LIFE] end
        if now - s >= live then s = false end
      end

      if kind == 0 then
        if verb == 3 then -- so many fewer were in use from the state's own instant on
          local q, r = 0, 0 -- what came in their place: q tokens and r/period
          if unused and now > taken then q, r = muldiv(L[TOKENS], now - taken, period) end
          if s and q < cost then
            x, y, kept, at = A - cost + q, B + r, lived, s
            if r > 0 and y >= period then x, y = x + 1, y - period end
            if x < 0 then x, y = 0, 0 end
          end
        else
          if s then
            x, y = A, B
            if y >= period then y = period - 1 end
            if x >= L[CAPACITY] then x, y = L[CAPACITY], 0 end
            local q, r = muldiv(L[TOKENS], now - s, period)
            x, y = x - q, y - r
            if y < 0 then x, y = x - 1, y + period end
            if x < 0 then x, y = 0, 0 end
          end
          room, kept = L[CAPACITY] - x, L[LIFE]
          if y > 0 then room = room - 1 end
        end
      elseif kind == 1 then
        y = now + period
        if s and A > 0 then x, y = A, s + live end
        kept = y - now
        if verb == 3 then
          if x == 0 or taken > 0 and taken < y - period then kept = false end
          x = math.max(0, x - cost)
        else
          room = L[TOKENS] - x
        end
        y = 0
      elseif kind == 2 then
        local index = floor(now / period)
        local same = s and floor(s / period) == index
        if same then x = A end
        kept = (index + 1) * period - now
        if verb == 3 then
          if not same or taken > 0 and floor(taken / period) ~= index then kept = false end
          x = math.max(0, x - cost)
        else
          room = L[TOKENS] - x
        end
      else
        local index = floor(now / period)
        local elapsed = now - index * period
        if s then
          local windows = index - floor(s / period)
          if windows == 0 then x, y = A, B elseif windows == 1 then y = A end
          if y > L[TOKENS] then y = math.max(0, L[TOKENS] - 1) end
        end
        kept = L[LIFE] - elapsed
        if verb == 3 then
          local when = floor(taken / period)
          if taken == 0 or when == index then
            x = math.max(0, x - cost)
          elseif when == index - 1 then
            y = math.max(0, y - cost)
          end
          kept = s and kept
        else
          local weight, part = muldiv(y, period - elapsed, period)
          if part > 0 then weight = weight + 1 end
          room = L[TOKENS] - x - weight
        end
      end
    end
    if room and cost > 0 and room < grants * cost then
      grants = floor(room / cost)
      if grants < 0 then grants = 0 end
    end
    if n > 1 then
      charges = charges or {}
      charges[c], charges[c + 1], charges[c + 2], charges[c + 3], charges[c + 4], charges[c + 5], charges[c + 6] = i, L, cost, x, y, kept, at
    end
  end

  if verb == 2 then grants = 0 end
  if verb <= 3 then
    nreply = nreply + 1
    reply[nreply] = grants == times and 'a' or grants == 0 and 'n' or pack('>c1I4', 'p', grants)
  end

  for c = 1, 7 * n, 7 do
    if n > 1 then
      i, L, cost, x, y, kept, at =
        charges[c], charges[c + 1], charges[c + 2], charges[c + 3], charges[c + 4], charges[c + 5], charges[c + 6]
    end
    local charged = cost > 0 and grants > 0 and verb ~= 4
    local value
    if i <= fields then
      if charged and kept then
        if verb == 1 then x = x + grants * cost end
        local kind, short = L[KIND], y
        if kind == 1 then
          short = kept
        elseif kept ~= (kind == 0 and L[LIFE] or L[LIFE] - at % L[PERIOD]) then -- the life is not what the limit implies
          short = false
        end
        if short and not L[NAMED] and short < 4294967296 and x < 16777216 then
          packed[i] = pack('>I7I3I4', at, x, short)
        else
          packed[i] = pack(x < 4294967296 and y < 1099511627776 and '>I7I6I4I5' or '>I7I6I7I7', at, kept, x, y)
        end
        dirty[i] = true
      end
      value = packed[i] or ''
    elseif verb <= 2 then
      value = (charged and grantLog or logState)(i - fields, L, x, y, cost)
    elseif verb == 3 then
      local t, used = alive(i - fields, L[PERIOD], false)
      value = logState(i - fields, L, t, used, 0)
    end
    if verb <= 3 then
      local size = #value
      reply[nreply + 1] = size == 14 and '\14' or size == 0 and '\0' or size == 22 and '\22' or size == 21 and '\21' or '\27'
      reply[nreply + 2] = value
      nreply = nreply + 2
    end
  end
end

-- Writes: one HSET for each table that changed.

if nlogs > 0 then saveLogs() end

-- What must go, goes from both hashes; of a limit with a name, from all tables that it may have been in.
if found or mode == 2 then
  local written = false
  for t = 1, full do
    local T = tables[t]
    for i = T.base + 1, T.base + T.count do
      local other = found and found[i]
      written = written or dirty[i]
      if dirty[i] and (other or not packed[i]) then
        for u = 1, ntables do
          local U = tables[u]
          local here = U == T or i <= T.base + T.named and U.shard == T.shard
          if U == other or here and not packed[i] then
            call('HDEL', U.even, ARGV[1 + i])
            call('HDEL', U.odd, ARGV[1 + i])
          end
        end
      end
    end
  end
  if found and written then -- what is over in a table that was searched goes, lest a clock that steps back bring it to life beside this
    for u = 1, ntables do
      local U = tables[u]
      if U.over and not U.hasCurrent then call('UNLINK', U.current) end
      if U.over and not U.hasFormer then call('UNLINK', U.former) end
    end
  end
end

local heal = now % full + 1 -- the table whose TTL is looked after by this call
local first, writes = 1, { false, false }
for t = 1, full do
  local n = 0
  for i = first, last[t] do
    if dirty[i] and packed[i] then
      writes[n + 1], writes[n + 2] = ARGV[1 + i], packed[i]
      n = n + 2
    end
  end
  first = last[t] + 1
  if n > 0 then
    if rare and not tables[t].begun then begin(tables[t]) end
    local hash = rare and tables[t].current or current[t]
    call('HSET', hash, unpack(writes, 1, n))
    if t == heal and call('PTTL', hash) == -1 then -- what took its TTL away may have done so to the other
      local length = read('>I7', program, start + 13 * (t - 1))
      local generation = rare and tables[t].generation or floor(now / length)
      local ttl = math.ceil(((generation + 2) * length - now + math.max(length, 600000000)) / 1000) -- as begin has it
      call('PEXPIRE', KEYS[2 * t - 1], ttl)
      call('PEXPIRE', KEYS[2 * t], ttl)
    end
  end
end
return table.concat(reply, '', 1, nreply)
