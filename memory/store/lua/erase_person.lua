-- Uses: scope
-- ARGV: receipt id, person, update id of the confirmation.
-- Erases a person's waiting messages and dead letters in a group, and the open turn if it has such a message.
local receipt = receipt_of(ARGV[1])
if receipt then return receipt end
local waiting = drop_letters(ARGV[3], ARGV[2])
local own_turn = false
local taken = ',' .. (redis.call('HGET', TURN, 'taken') or '') .. ','
for _, member in ipairs(redis.call('ZRANGEBYSCORE', MAILBOX, '-inf', ARGV[3])) do
  local id, sender = read_entry(member)
  if sender == ARGV[2] then
    waiting = waiting + redis.call('ZREM', MAILBOX, member)
    own_turn = own_turn or string.find(taken, ',' .. id .. ',', 1, true) ~= nil
  end
end
if own_turn then redis.call('DEL', TURN) end
begin_again()
redis.call('HDEL', META, 'met:' .. ARGV[2])
cut_person(ARGV[2], ARGV[3])
return keep_receipt(ARGV[1], {0, 0, waiting, redis.call('ZCARD', MAILBOX)})
