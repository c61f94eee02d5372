-- ARGV: token, epoch, erasure, turn, ttl s, sitting, digest of the steps, what tools are to write,
-- message count, `how` (9), then seven arguments a message. A repeat of a call whose answer was lost
-- appends nothing and answers the same, or that the lease is lost where it has gone meanwhile.

-- Returns of what tools want written that which is to be forgotten, '' for nothing: all that may be
-- written of what is said while memory is off. No statement can look like it, for its quotes are escaped.
local function forgets_among(writes)
  local found = {}
  for each in string.gmatch(writes, '%["forget",%d+[^%[%]"]*"?[%w_%-]*"?%]') do found[#found + 1] = each end
  return #found > 0 and '[' .. table.concat(found, ',') .. ']' or ''
end

local how = how_from(10)
local this, briefly = ARGV[4] .. '|' .. ARGV[1], ARGV[4] .. '|' .. string.match(ARGV[1], '^%d+') .. ','
local last = redis.call('HMGET', META, 'committed', 'committed_exchange', 'committed_first', 'closed')
local closed = last[4] or ','
if last[1] == this then
  -- Without its lease it must not say that nothing waits: the first call may have begun the next turn.
  local begun = {'lost'}
  if redis.call('GET', LEASE) == ARGV[1] then begun = begin(ARGV[1], how) end
  return {'committed', tonumber(last[2]), tonumber(last[3]), begun}
end
-- Of those that others followed only the newest eight are known, by turn and fence.
if string.find(closed, ',' .. briefly, 1, true) then return {'superseded'} end
if refused(ARGV[1], ARGV[2], ARGV[3]) then
  -- Closed by another holder, who began with the part in doubt: ours counts for nobody.
  if string.find(closed, ',' .. ARGV[4] .. '|', 1, true) then return {'refused'} end
  return {refusal(ARGV[2], ARGV[3], ARGV[4], '')}
end
for id in string.gmatch(redis.call('HGET', TURN, 'taken') or '', '%-?%d+') do
  redis.call('ZREMRANGEBYSCORE', MAILBOX, id, id)
end
redis.call('DEL', TURN)
local count, exchange, first = tonumber(ARGV[9]), 0, 0
if count > 0 then
  exchange = redis.call('HINCRBY', META, 'exchanges', 1)
  first = append(19, count, exchange)
end
closed = string.match(closed .. briefly, ',' .. string.rep('[^,]*,', 8) .. '$') or closed .. briefly
redis.call('HSET', META, 'committed', this, 'committed_exchange', exchange, 'committed_first', first, 'closed', closed)
if ARGV[6] ~= '' then redis.call('HSET', META, 'session', redis.call('HGET', META, 'next_seq') or 0) end
-- What learning needs of this turn beside its words; it goes when it is learned.
local is_off = redis.call('HEXISTS', META, 'off_at') == 1
if ARGV[7] ~= '' and count > 1 and not is_off then redis.call('HSET', LEARNED, 'digest:' .. first + count - 1, ARGV[7]) end
local writes = is_off and forgets_among(ARGV[8]) or ARGV[8]
if writes ~= '' then redis.call('HSET', LEARNED, 'tool_writes:' .. ARGV[4], first .. '|' .. writes) end
forget_beyond_window(how.tail)
touch(ARGV[5])
how.known_seq = redis.call('HGET', META, 'next_seq') or '0'
return {'committed', exchange, first, begin(ARGV[1], how)}
