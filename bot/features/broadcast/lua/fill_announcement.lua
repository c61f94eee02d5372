-- KEYS: the announcement; the chats that are left; its lease. ARGV[1], a JSON object: `token` of the lease;
-- `chats`, pairs of last activity and chat id; `is_last`, whether these are the last ones; `kept_s`.
-- Adds chats until the last ones were added. Answers 'ok', or 'lost' if the caller has no lease.
local request = cjson.decode(ARGV[1])
if redis.call('GET', KEYS[3]) ~= request.token then return 'lost' end
if redis.call('HEXISTS', KEYS[1], 'total') == 1 then return 'ok' end
if #request.chats > 0 then redis.call('ZADD', KEYS[2], unpack(request.chats)) end
redis.call('EXPIRE', KEYS[2], request.kept_s)
if request.is_last then redis.call('HSET', KEYS[1], 'total', redis.call('ZCARD', KEYS[2])) end
return 'ok'
