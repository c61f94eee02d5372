-- ARGV: receipt id, person, update id of the confirmation, then sequences to take out of history.
-- Erases of a person's share of a group what is named, what waits, and an open turn. Whoever holds the
-- lease saw all of it and has to begin again.
local receipt = receipt_of(ARGV[1])
if receipt then return receipt end
local erased, vectors, waiting = 0, 0, 0
for i = 4, #ARGV do
  erased = erased + redis.call('XDEL', LOG, ARGV[i] .. '-0')
  vectors = vectors + redis.call('XDEL', VEC, ARGV[i] .. '-0')
end
if erased > 0 then leave_no_bytes(LOG) end
if vectors > 0 then leave_no_bytes(VEC) end
local own_turn = false
local taken = ',' .. (redis.call('HGET', TURN, 'taken') or '') .. ','
for _, member in ipairs(redis.call('ZRANGEBYSCORE', MAILBOX, '-inf', ARGV[3])) do
  local id, sender = read_entry(member)
  if sender == ARGV[2] then
    waiting = waiting + redis.call('ZREM', MAILBOX, member)
    own_turn = own_turn or string.find(taken, ',' .. id .. ',', 1, true) ~= nil
  end
end
redis.call('DEL', LEASE)
if own_turn then redis.call('DEL', TURN) else redis.call('HDEL', TURN, 'outbox', 'sending', 'sent') end
redis.call('HINCRBY', META, 'erasure', 1)
redis.call('HSET', META, 'cut:' .. ARGV[2], ARGV[3] .. '|' .. whole(now_ms()))
return keep_receipt(ARGV[1], {erased, vectors, waiting, redis.call('ZCARD', MAILBOX)})
