-- KEYS[1]: the last update up to which a person is forgotten. ARGV[1], a JSON object:
-- `last_update`; `ttl_ms`, for how long update ids ascend.
-- Answers 1, or 0 if a later forgetting has written a higher id.
local request = cjson.decode(ARGV[1])
if tonumber(redis.call('GET', KEYS[1]) or '-inf') >= tonumber(request.last_update) then return 0 end
redis.call('SET', KEYS[1], request.last_update, 'PX', request.ttl_ms)
return 1
