-- Uses: scope
-- ARGV[1], a JSON object: `by`, the update id of the command; `is_due`, if only a session whose time is over is to end.
-- Erases the words of the session off the record. Answers how many messages it had, -1 if there is no such session.
-- If the answer of a call was lost, its repeat answers the same.
-- A session whose time is over stays known, because messages that were sent in it may still wait. Its command goes: that
-- was put into the mailbox, and it names its person.
local request = cjson.decode(ARGV[1])
local by, messages = string.match(redis.call('HGET', META, 'off_record_ended') or '', '^([^|]*)|(%d+)$')
if by then return by == request.by and tonumber(messages) or -1 end
local since, ends_at = off_record()
if not since or (request.is_due and now_ms() < ends_at) then return -1 end
messages = tonumber(redis.call('HGET', META, 'off_record_said') or 0)
redis.call('UNLINK', OFF_RECORD)
redis.call('HDEL', META, 'off_record_said')
redis.call('HSET', META, 'off_record_ended', request.by .. '|' .. messages)
if request.is_due then
  redis.call('HSET', META, 'off_record', whole(since) .. '|' .. whole(ends_at) .. '|')
else
  redis.call('HDEL', META, 'off_record')
end
return messages
