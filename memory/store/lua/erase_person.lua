-- Uses: scope, messages, work, erasing
-- ARGV[1], a JSON object: `receipt`, the id of the receipt; `person`; `last_update`, the update id of the confirmation;
-- `until`, its time in Unix seconds.
-- Erases a person's waiting messages, dead letters, work items, albums and questions about tools in a group, and the
-- open turn if it has such a message.
local request = cjson.decode(ARGV[1])
drop_damaged()
local receipt = receipt_of(request.receipt)
if receipt then return receipt end
local waiting = drop_letters(request.last_update, request.person)
local own_turn = false
local taken = ',' .. (redis.call('HGET', TURN, 'taken') or '') .. ','
for _, member in ipairs(redis.call('ZRANGEBYSCORE', MAILBOX, '-inf', request.last_update)) do
  local id, sender = read_entry(member)
  if sender == request.person then
    waiting = waiting + redis.call('ZREM', MAILBOX, member)
    own_turn = own_turn or string.find(taken, ',' .. id .. ',', 1, true) ~= nil
  end
end
-- An item that was asked for after the confirmation stays; without its message nobody knows when that was.
drop_work(function(person, seq)
  if person ~= request.person then return false end
  local id = whole(seq) .. '-0'
  local asked = redis.call('XRANGE', LOG, id, id)[1]
  local _, _, _, _, _, _, _, sent_at = unpack(asked and asked[2] or {})
  return not asked or tonumber(sent_at) <= request['until']
end)
if own_turn then redis.call('DEL', TURN) end
begin_again()
end_look()
drop_questions_with_words(request.person)
for _, album in ipairs(redis.call('ZRANGE', ALBUMS, 0, -1)) do
  if string.match(album, '^%-?%d+') == request.person then redis.call('ZREM', ALBUMS, album) end
end
redis.call('HDEL', META, 'met:' .. request.person)
cut_person(request.person, request.last_update)
-- What they said here until then goes next, and all turns of their tasks until now. So nobody may have it answered
-- again from now on.
redis.call('HSET', META, 'forgotten_tasks:' .. request.person, string.format('%.3f', now_ms() / 1000))
local forgotten = 'forgotten_until:' .. request.person
if request['until'] > tonumber(redis.call('HGET', META, forgotten) or 0) then
  redis.call('HSET', META, forgotten, request['until'])
end
return keep_receipt(request.receipt, {0, 0, waiting, redis.call('ZCARD', MAILBOX)})
