-- Uses: scope, delta, interrupt, begin
-- Keys: meta, lease, turn, mailbox, seen, log, vec, learned, records, rvec, dead_letters, reminders, off_record
-- ARGV[1], a JSON object: `nonce`, the random part of a new token; `token` if the caller holds the lease and begins its
-- turn again, with the messages that followed, or the turn that was overtaken; `wake_up`, the delivery that the caller serves; and the fields that
-- `interrupt` and `begin` read.
-- Answers as `begin` does. Other outcomes: 'held' with the holder's wake-up, 'moved', 'empty', 'parked' with
-- the ms until it is due, 'lost'.
-- If the answer of a call was lost, its repeat finds its own nonce in the lease and goes on.
local request = cjson.decode(ARGV[1])
if request.token then
  local holder = redis.call('GET', LEASE)
  if holder ~= request.token then return no_turn('lost') end
  local outbox, taken = unpack(redis.call('HMGET', TURN, 'outbox', 'taken'))
  local ids = not outbox and with_followers(request, taken)
  if ids and #ids == 0 then
    redis.call('DEL', TURN)
  elseif ids then
    redis.call('HSET', TURN, 'id', ids[1], 'taken', table.concat(ids, ','))
  end
  return begin(holder, request, {})
end
local meta = {read_meta('fence', 'wake_up', unpack(DELTA_FIELDS))}
local moved_from, fence, last_wake_up = meta[3], table.remove(meta, 5), table.remove(meta, 5)
local open = last_wake_up == NO_LEASE and {} or open_turn()
local members = not open[2] and waiting() or nil
local is_empty = members and #members == 0 or not members and redis.call('ZCARD', MAILBOX) == 0
local due, pause = open[11], open[12]
local wait_ms = due and due - now_ms() or 0
local is_parked = wait_ms > 0 and wait_ms <= tonumber(pause or wait_ms)
fence = whole((tonumber(fence) or 0) + 1)
local token = fence .. ':' .. request.nonce
local taken = not (moved_from or is_empty or is_parked)
  and redis.pcall('SET', LEASE, token, 'PX', request.lease_ms, 'NX')
if taken and taken.ok then
  redis.call('HSET', META, 'fence', fence, 'wake_up', request.wake_up)
  return begin(token, request, {open = open, waiting = members, meta = meta, is_leased = true})
end
local holder = redis.call('GET', LEASE)
if holder then
  if string.sub(holder, -#request.nonce) == request.nonce then return begin(holder, request, {}) end
  if is_from_the_future(LEASE, request.lease_ms) then
    -- If the holder is dead, nobody reclaims its wake-up either until the clock has caught up. So the caller must keep
    -- its own, and so must those who come before the lease is over.
    redis.call('PEXPIRE', LEASE, request.lease_ms)
    redis.call('HDEL', META, 'wake_up')
    return no_turn('held', {wake_up = ''})
  end
  return no_turn('held', {wake_up = redis.call('HGET', META, 'wake_up') or ''})
end
if taken then return taken end -- Redis is full
if moved_from then return no_turn('moved') end
if is_parked and not is_empty then return no_turn('parked', {wait_ms = wait_ms}) end
redis.call('DEL', TURN)
return no_turn('empty')
