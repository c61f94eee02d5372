-- Begins the next turn of a held conversation, or says why there is none. Follows prelude and notes.
-- how = {lease_ms, coalesce_ms, coalesce_max_ms, most_entries, known_seq, known_vec, known_record,
-- known_record_vec, tail}
local function load(how)
  local log = redis.call('XREVRANGE', LOG, '+', '(' .. how.known_seq .. '-0', 'COUNT', how.tail)
  local vec = redis.call('XRANGE', VEC, '(' .. how.known_vec .. '-0', '+', 'COUNT', how.tail)
  return redis.call('XLEN', LOG), log, redis.call('HGET', META, 'vector_fingerprint') or '',
    redis.call('XLEN', VEC), vec, redis.call('HGET', META, 'session') or '0',
    {load_notes(how.known_record, how.known_record_vec, how.tail)}
end

local function taken_entries()
  local entries = {}
  for id in string.gmatch(redis.call('HGET', TURN, 'taken') or '', '%-?%d+') do
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', MAILBOX, id, id)) do
      entries[#entries + 1] = member
    end
  end
  return entries
end

-- How long the newest entry still wants to be waited for, in ms; commands never wait, nor does what came
-- so long ago that nobody knows when: put back by an admin, or after days without workers.
local function wanted_wait(members, how)
  local _, _, kind = read_entry(members[1])
  if kind == 'c' then return 0 end
  local now, oldest, newest = now_ms(), nil, nil
  for _, member in ipairs(members) do
    local arrived = tonumber(redis.call('ZSCORE', SEEN, (read_entry(member))) or 0)
    oldest = math.min(oldest or arrived, arrived)
    newest = math.max(newest or arrived, arrived)
  end
  if newest > now then return 0 end -- the clock went back
  return math.min(newest + how.coalesce_ms, oldest + how.coalesce_max_ms) - now
end

-- Quick successive messages of one sender are one turn; a command is a turn of its own.
local function take(members)
  local entries, ids = {}, {}
  local _, first_sender, first_kind = read_entry(members[1])
  for _, member in ipairs(members) do
    local id, sender, kind = read_entry(member)
    if #entries > 0 and (first_kind == 'c' or kind == 'c' or sender ~= first_sender) then break end
    entries[#entries + 1] = member
    ids[#ids + 1] = id
  end
  -- `ballast` is given back by the outbox, so that a reply fits even when Redis fills up meanwhile.
  redis.call('HSET', TURN, 'id', ids[1], 'taken', table.concat(ids, ','), 'attempts', 0,
    'ballast', string.rep(' ', 8192))
  return entries
end

local function begin(token, how)
  local entries = taken_entries()
  if #entries == 0 then
    redis.call('DEL', TURN)
    local members = redis.call('ZRANGE', MAILBOX, 0, how.most_entries - 1)
    if #members == 0 then
      redis.call('DEL', LEASE)
      return {'empty'}
    end
    local wait = wanted_wait(members, how)
    if wait > 0 then
      redis.call('PEXPIRE', LEASE, how.lease_ms)
      return {'wait', token, whole(wait)}
    end
    entries = take(members)
  end
  redis.call('PEXPIRE', LEASE, how.lease_ms)
  redis.call('HDEL', TURN, 'due', 'pause')
  -- One holder counts once, however often its call is repeated.
  if redis.call('HGET', TURN, 'begun_by') ~= token then
    redis.call('HINCRBY', TURN, 'attempts', 1)
    redis.call('HSET', TURN, 'begun_by', token)
  end
  local turn = redis.call('HMGET', TURN, 'id', 'attempts', 'outbox', 'sending', 'sent', 'failures', 'error')
  local epoch, erasure = versions()
  return {'turn', token, epoch, erasure, turn[1], turn[2],
    turn[3] or '', turn[4] or '0', turn[5] or '', turn[6] or '0', turn[7] or '', entries, load(how)}
end

local function how_from(first)
  return {lease_ms = tonumber(ARGV[first]), coalesce_ms = tonumber(ARGV[first + 1]),
    coalesce_max_ms = tonumber(ARGV[first + 2]), most_entries = tonumber(ARGV[first + 3]),
    known_seq = ARGV[first + 4], known_vec = ARGV[first + 5], known_record = ARGV[first + 6],
    known_record_vec = ARGV[first + 7], tail = ARGV[first + 8]}
end
