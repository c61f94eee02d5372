-- KEYS, all in the slot of access: open invitations; who is in; who was refused; who asks to be let in; of whom admins
-- were not told yet; the version of the list; the name.
-- ARGV[1], a JSON object: `link`, the hash of the code; `id`; `ttl_s`, for how long the name is kept. ARGV[2]: the name.
-- Uses the invitation up by one. Answers 'in', also for somebody who is in already, or 'invalid'.
-- An invitation is stored as `<made at>|<ends at>|<uses left>|<by>`, times in ms. It does not let in anybody who was
-- refused or removed after it was made.
local request, now = cjson.decode(ARGV[1]), now_ms()
if redis.call('HEXISTS', KEYS[2], request.id) == 1 then return 'in' end
local made_at, ends_at, left, by =
  string.match(redis.call('HGET', KEYS[1], request.link) or '', '^(%d+)|(%d+)|(%d+)|(%d+)$')
if not made_at then return 'invalid' end
if now >= tonumber(ends_at) then
  redis.call('HDEL', KEYS[1], request.link)
  return 'invalid'
end
local refused_at = string.match(redis.call('HGET', KEYS[3], request.id) or '', '^%d+')
if refused_at and tonumber(refused_at) >= tonumber(made_at) then return 'invalid' end
if tonumber(left) <= 1 then
  redis.call('HDEL', KEYS[1], request.link)
else
  redis.call('HSET', KEYS[1], request.link, table.concat({made_at, ends_at, whole(left - 1), by}, '|'))
end
redis.call('HDEL', KEYS[3], request.id)
redis.call('HDEL', KEYS[4], request.id)
redis.call('ZREM', KEYS[5], request.id)
redis.call('HSET', KEYS[2], request.id, whole(now) .. '|link|' .. by)
redis.call('SET', KEYS[7], ARGV[2], 'EX', request.ttl_s)
redis.call('INCR', KEYS[6])
return 'in'
