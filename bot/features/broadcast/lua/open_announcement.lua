-- KEYS: the announcement; the chats that are left; its lease. ARGV[1], a JSON object: `token` and `ttl_ms` of the lease;
-- `chat`.
-- Marks a chat as being sent to, right before the request. From now on it counts as unknown until its outcome is
-- stored. Answers 'ok', 'gone' if the chat is left no more, or 'lost' if the caller has no lease.
local request = cjson.decode(ARGV[1])
if redis.call('GET', KEYS[3]) ~= request.token then return 'lost' end
redis.call('PEXPIRE', KEYS[3], request.ttl_ms)
local mark = request.chat .. '|' .. request.token
if redis.call('ZREM', KEYS[2], request.chat) == 0 then
  return redis.call('HGET', KEYS[1], 'open') == mark and 'ok' or 'gone'
end
redis.call('HSET', KEYS[1], 'open', mark)
return 'ok'
