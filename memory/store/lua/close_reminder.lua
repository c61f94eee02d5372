-- Uses: scope
-- ARGV[1], a JSON object: `id`; `token` of the caller; `due`, when it is due next in ms, '0' for never.
-- Ends the delivery of a reminder. Answers 1, or 0 if it was erased or another worker has taken it. If the answer of a
-- call was lost, its repeat finds the token among the confirmations.
local request = cjson.decode(ARGV[1])
local stored = redis.call('HGET', REMINDERS, request.id)
local person, seq, _, _, _, token, body
if stored then person, seq, _, _, _, token, body = read_reminder(stored) end
if token ~= request.token then return redis.call('HEXISTS', CONFIRM, request.token) end
if request.due == '0' then
  redis.call('HDEL', REMINDERS, request.id)
else
  redis.call('HSET', REMINDERS, request.id, table.concat({person, seq, request.due, 0, 0, '', body}, '|'))
end
redis.call('HSET', CONFIRM, request.token, 'reminded')
redis.call('EXPIRE', CONFIRM, 3600)
return 1
