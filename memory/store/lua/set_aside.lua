-- ARGV: token, epoch, erasure, lease ms, ttl s, class of the error, most letters, what is sent instead.
-- The mail of this turn becomes a dead letter and the turn gets an outbox, as one step.
-- A letter is a field `<turn>` = `<ms>|<error>|<sender>` and a field `<turn>:<update>` for each entry.
if refused(ARGV[1], ARGV[2], ARGV[3]) then return 'refused' end
redis.call('HDEL', TURN, 'ballast')
local turn, from = redis.call('HGET', TURN, 'id'), '0'
for id in string.gmatch(redis.call('HGET', TURN, 'taken') or '', '%-?%d+') do
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', MAILBOX, id, id)) do
    redis.call('HSET', DEAD, turn .. ':' .. id, member)
    local _, sender = read_entry(member)
    from = sender or from
  end
end
redis.call('HSET', DEAD, turn, whole(now_ms()) .. '|' .. ARGV[6] .. '|' .. from)
local letters = dead_letters()
while #letters > tonumber(ARGV[7]) do drop_letter(table.remove(letters, 1).id) end
redis.call('EXPIRE', DEAD, ARGV[5])
redis.call('HSET', TURN, 'outbox', ARGV[8], 'sending', 0, 'sent', '')
redis.call('PEXPIRE', LEASE, ARGV[4])
return 'ok'
