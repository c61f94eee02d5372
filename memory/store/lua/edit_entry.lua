-- Uses: scope
-- Gives a waiting message new words, once for each update that brings them.
-- ARGV[1], a JSON object: `update_id` of the edit; `seen_ms`, how long update ids are remembered. ARGV[2]: the member of
-- the mailbox or of a dead letter. ARGV[3]: its new form.
-- If a turn has taken the message and has no reply yet, the turn begins again. This does not count as a failed attempt.
-- Answers 'edited', 'duplicate', 'answered' if the reply exists already, or 'changed' if the member is not there.
local request, old, new = cjson.decode(ARGV[1]), ARGV[2], ARGV[3]
if redis.call('ZSCORE', SEEN, request.update_id) then return 'duplicate' end
local id = read_entry(old)
local is_edited = false
for _, field in ipairs(redis.call('HKEYS', DEAD_LETTERS)) do
  if redis.call('HGET', DEAD_LETTERS, field) == old then
    redis.call('HSET', DEAD_LETTERS, field, new)
    is_edited = true
  end
end
if redis.call('ZSCORE', MAILBOX, old) then
  local taken = string.find(',' .. (redis.call('HGET', TURN, 'taken') or '') .. ',', ',' .. id .. ',', 1, true)
  if taken and redis.call('HEXISTS', TURN, 'outbox') == 1 then
    if not is_edited then return 'answered' end
  else
    redis.call('ZREM', MAILBOX, old)
    redis.call('ZADD', MAILBOX, id, new)
    is_edited = true
    if taken then
      redis.call('DEL', LEASE)
      redis.call('HSET', TURN, 'attempts', 0)
      redis.call('HDEL', TURN, 'stopped') -- what was stopped were the old words
      signal()
    end
  end
end
if not is_edited then return 'changed' end
redis.call('ZADD', SEEN, whole(now_ms()), request.update_id)
return 'edited'
