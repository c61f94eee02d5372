-- Uses: scope
-- ARGV[1], a JSON object: `letter`; `ttl_s`.
-- Puts the messages of a dead letter back into the mailbox. Answers 'begun', or 'nothing' if there is none. Answers 'later'
-- while its turn is open, because the commit would remove the messages; and while the lease is held that closed its turn,
-- because under that lease the turn would count as closed already.
local request = cjson.decode(ARGV[1])
if redis.call('HEXISTS', DEAD_LETTERS, request.letter) == 0 then return 'nothing' end
if redis.call('HGET', TURN, 'id') == request.letter then return 'later' end
local fence = string.match(redis.call('GET', LEASE) or '', '^%d+')
if fence then
  local closed = redis.call('HGET', META, 'closed') or ''
  if string.find(closed, ',' .. request.letter .. '|' .. fence .. ',', 1, true) then return 'later' end
end
for _, member in ipairs(drop_letter(request.letter)) do
  redis.call('ZADD', MAILBOX, (read_entry(member)), member)
end
touch(request.ttl_s)
return 'begun'
