-- KEYS, all in the slot of access: who asks to be let in; of whom admins were not told yet; who is in; who was refused;
-- the version of the list; the name.
-- ARGV[1], a JSON object: `id`; `decision`: 'admit' or 'refuse' somebody who asks, or 'remove' somebody who is in; `by`,
-- who decides; `ttl_s`, for how long the name is kept; `max_refused`.
-- Answers 'done|<the request>', 'in|<by>' or 'out|<by>' if it was decided before, or 'nothing'.
local request, now = cjson.decode(ARGV[1]), whole(now_ms())
local stored = redis.call('HGET', request.decision == 'remove' and KEYS[3] or KEYS[1], request.id)
if not stored then
  local admitted, refused = redis.call('HGET', KEYS[3], request.id), redis.call('HGET', KEYS[4], request.id)
  if admitted then return 'in|' .. string.match(admitted, '[^|]*$') end
  return refused and 'out|' .. string.match(refused, '[^|]*$') or 'nothing'
end
redis.call('HDEL', KEYS[1], request.id)
redis.call('ZREM', KEYS[2], request.id)
if request.decision == 'admit' then
  redis.call('HDEL', KEYS[4], request.id)
  redis.call('HSET', KEYS[3], request.id, now .. '|asked|' .. request.by)
  redis.call('EXPIRE', KEYS[6], request.ttl_s)
else
  redis.call('HDEL', KEYS[3], request.id)
  redis.call('HSET', KEYS[4], request.id, now .. '|' .. request.by)
  redis.call('DEL', KEYS[6])
  local excess = redis.call('HLEN', KEYS[4]) - request.max_refused
  if excess > 0 then
    local oldest, oldest_at = nil, nil
    local refused = redis.call('HGETALL', KEYS[4])
    for i = 1, #refused, 2 do
      local at = tonumber(string.match(refused[i + 1], '^%d+'))
      if not oldest_at or at < oldest_at then oldest, oldest_at = refused[i], at end
    end
    redis.call('HDEL', KEYS[4], oldest)
  end
end
redis.call('INCR', KEYS[5])
return 'done|' .. stored
