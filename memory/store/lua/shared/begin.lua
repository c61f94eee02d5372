-- Begins the next turn under a held lease, or says why there is none. Follows `scope` and `delta`.
-- `request` has `lease_ms`, `tail` (how many messages, and how many of anything else, are read at most) and
-- `cursor`, the newest of each kind that the caller has already.
-- Answers a list. First comes a JSON object with the outcome; for a turn its outbox, its mailbox members,
-- the answer of `read_delta` and the messages of a session off the record follow. The object leaves out what a turn does not have yet.
local function no_turn(why, details)
  local head = details or {}
  head.outcome = why
  return {cjson.encode(head)}
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

-- Takes the messages of the next turn: consecutive messages of one sender, or one command.
local function take(members)
  local entries, ids = {}, {}
  local _, first_sender, first_kind = read_entry(members[1])
  for _, member in ipairs(members) do
    local id, sender, kind = read_entry(member)
    if #entries > 0 and (first_kind == 'c' or kind == 'c' or sender ~= first_sender) then break end
    entries[#entries + 1] = member
    ids[#ids + 1] = id
  end
  -- The outbox frees `ballast`, so that a reply has space even if Redis fills up meanwhile.
  redis.call('HSET', TURN, 'id', ids[1], 'taken', table.concat(ids, ','), 'attempts', 0,
    'ballast', string.rep(' ', 8192))
  return entries
end

local function begin(token, request)
  local entries = taken_entries()
  if #entries == 0 then
    redis.call('DEL', TURN)
    local members = redis.call('ZRANGE', MAILBOX, 0, MAX_ENTRIES - 1)
    if #members == 0 then
      redis.call('DEL', LEASE)
      return no_turn('empty')
    end
    entries = take(members)
  end
  redis.call('PEXPIRE', LEASE, request.lease_ms)
  redis.call('HDEL', TURN, 'due', 'pause')
  -- A holder counts as one attempt, even if its call is repeated.
  if redis.call('HGET', TURN, 'begun_by') ~= token then
    redis.call('HINCRBY', TURN, 'attempts', 1)
    redis.call('HSET', TURN, 'begun_by', token)
  end
  local id, attempts, outbox, sending, sent, failures, error, stopped = unpack(redis.call('HMGET', TURN,
    'id', 'attempts', 'outbox', 'sending', 'sent', 'failures', 'error', 'stopped'))
  local head = {outcome = 'turn', token = token, id = id, attempts = tonumber(attempts),
    sending = tonumber(sending), sent = sent or nil, failures = tonumber(failures), error = error or nil,
    stopped = stopped and true or nil}
  local since, ends_at = off_record()
  if since then head.off_record = {since, ends_at} end
  local said = since and redis.call('XRANGE', OFF_RECORD, '-', '+') or {}
  return {cjson.encode(head), outbox or '', entries, read_delta(request.cursor, request.tail), said}
end
