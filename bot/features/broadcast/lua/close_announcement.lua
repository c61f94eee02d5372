-- KEYS: the announcement; the chats that are left; its lease. ARGV[1], a JSON object: `token` of the lease; `wait_ms`.
-- Ends the announcement; with `wait_ms` its receipt is still to be shown, after that time. Answers 'ok', or 'lost' if the
-- caller has no lease.
local request = cjson.decode(ARGV[1])
if redis.call('GET', KEYS[3]) ~= request.token then return 'lost' end
if request.wait_ms > 0 then
  redis.call('HSET', KEYS[1], 'due', whole(now_ms() + request.wait_ms))
else
  redis.call('HDEL', KEYS[1], 'due')
end
redis.call('DEL', KEYS[2])
return 'ok'
