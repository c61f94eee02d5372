-- Uses: scope
-- ARGV[2]: a member of the mailbox or of a dead letter. Erases the member, and the open turn if the turn has taken it.
-- The erasure version grows, so what is about to be written because of this message is refused.
local member = ARGV[2]
for _, field in ipairs(redis.call('HKEYS', DEAD_LETTERS)) do
  if redis.call('HGET', DEAD_LETTERS, field) == member then redis.call('HDEL', DEAD_LETTERS, field) end
end
if redis.call('ZREM', MAILBOX, member) == 1 then
  redis.call('HINCRBY', META, 'erasure', 1)
  local taken = ',' .. (redis.call('HGET', TURN, 'taken') or '') .. ','
  if string.find(taken, ',' .. read_entry(member) .. ',', 1, true) then
    redis.call('DEL', TURN, LEASE)
    signal()
  end
end
return 'ok'
