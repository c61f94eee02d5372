-- KEYS, all in the slot of access: who asks to be let in; of whom admins were not told yet; who was refused; the name.
-- ARGV[1], a JSON object: `id`; `language`; `max`, how many may ask at once; `keep_ms`, for how long a request counts.
-- ARGV[2]: the name. Answers 'asked' for a new request, 'waiting' for a known one, 'refused', or 'full'.
local request, now = cjson.decode(ARGV[1]), now_ms()
if redis.call('HEXISTS', KEYS[3], request.id) == 1 then return 'refused' end
local asking, count = redis.call('HGETALL', KEYS[1]), 0
for i = 1, #asking, 2 do
  local age = now - tonumber(string.match(asking[i + 1], '^%d+'))
  if math.abs(age) > request.keep_ms then
    redis.call('HDEL', KEYS[1], asking[i])
    redis.call('ZREM', KEYS[2], asking[i])
  else
    count = count + 1
  end
end
if redis.call('HEXISTS', KEYS[1], request.id) == 1 then return 'waiting' end
if count >= request.max then return 'full' end
redis.call('HSET', KEYS[1], request.id, whole(now) .. '|' .. request.language)
redis.call('ZADD', KEYS[2], whole(now), request.id)
redis.call('SET', KEYS[4], ARGV[2], 'PX', request.keep_ms)
return 'asked'
