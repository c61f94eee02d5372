-- Begins the next turn under a held lease, or says why there is none. Follows `scope` and `delta`.
-- `request` has `lease_ms`, `ttl_s`, `tail` (how many messages, and how many of anything else, are read at most) and
-- `cursor`, the newest of each kind that the caller has already.
-- Answers a list. First comes a JSON object with the outcome; for a turn its outbox, its mailbox members,
-- the answer of `read_delta` and the messages of a session off the record follow. The object leaves out what a turn does not have yet.
local function no_turn(why, details)
  local head = details or {}
  head.outcome = why
  return {cjson.encode(head)}
end

local function taken_entries(taken)
  local entries = {}
  for id in string.gmatch(taken or '', '%-?%d+') do
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', MAILBOX, id, id)) do
      entries[#entries + 1] = member
    end
  end
  return entries
end

-- Takes the messages of the next turn: consecutive messages of one sender, or one that is answered alone. Returns them
-- and the id of the turn. `token` is the lease that begins the turn, nil if none does yet.
local function take(members, ttl_s, token)
  local entries, ids = {}, {}
  local _, first_sender, first_kind = read_entry(members[1])
  for _, member in ipairs(members) do
    local id, sender, kind = read_entry(member)
    if #entries > 0 and (first_kind == 'c' or kind == 'c' or sender ~= first_sender) then break end
    entries[#entries + 1] = member
    ids[#ids + 1] = id
  end
  -- The outbox frees `ballast`, so that a reply has space even if Redis fills up meanwhile.
  redis.call('HSET', TURN, 'id', ids[1], 'taken', table.concat(ids, ','), 'attempts', token and 1 or 0,
    'begun_by', token or '', 'ballast', string.rep(' ', 8192))
  redis.call('EXPIRE', TURN, ttl_s)
  return entries, ids[1]
end

local function open_turn()
  return redis.call('HMGET', TURN, 'id', 'taken', 'begun_by', 'attempts', 'outbox', 'sending', 'sent', 'failures',
    'error', 'stopped', 'due', 'pause')
end

local function waiting()
  return redis.call('ZRANGE', MAILBOX, 0, MAX_ENTRIES - 1)
end

-- `known` has what the caller has just read; what is missing is read here. `open` is the answer of `open_turn`, {}
-- without a turn. `waiting` is the answer of `waiting`, and `meta` is as `read_delta` takes it. `is_leased` is true if
-- the caller has just taken the lease.
local function begin(token, request, known)
  local id, taken, begun_by, attempts, outbox, sending, sent, failures, error, stopped, due = unpack(
    known.open or open_turn())
  local entries = taken_entries(taken)
  local is_taken_over = #entries > 0 and begun_by ~= token
  if #entries == 0 then
    local members = known.waiting or waiting()
    if #members == 0 then
      redis.call('DEL', TURN, LEASE)
      return no_turn('empty')
    end
    if id or attempts then redis.call('DEL', TURN) end
    if not known.is_leased then redis.call('PEXPIRE', LEASE, request.lease_ms) end
    entries, id = take(members, request.ttl_s, token)
    attempts, outbox, sending, sent, failures, error, stopped = 1, false, false, false, false, false, false
  else
    if not known.is_leased then redis.call('PEXPIRE', LEASE, request.lease_ms) end
    if due then redis.call('HDEL', TURN, 'due', 'pause') end
  end
  -- A holder counts as one attempt, even if its call is repeated.
  if is_taken_over then
    attempts = redis.call('HINCRBY', TURN, 'attempts', 1)
    redis.call('HSET', TURN, 'begun_by', token)
  end
  local head = {outcome = 'turn', token = token, id = id, attempts = tonumber(attempts),
    sending = tonumber(sending), sent = sent or nil, failures = tonumber(failures), error = error or nil,
    stopped = stopped and true or nil}
  local delta, off_session = read_delta(request.cursor, request.tail, known.meta)
  local since, ends_at = off_record(off_session)
  if since then head.off_record = {since, ends_at} end
  local said = since and redis.call('XRANGE', OFF_RECORD, '-', '+') or {}
  return {cjson.encode(head), outbox or '', entries, delta, said}
end
