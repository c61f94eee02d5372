-- KEYS, both of one person: the conversations they spoke in, up to which update they are forgotten.
-- ARGV: conversation, update id, for how long ids ascend in ms. Notes the newest update and when it came
-- as `<id>|<ms>`, then answers the second key.
local now = now_ms()
local id, at = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+)|(%d+)$')
if not id or tonumber(id) < tonumber(ARGV[2]) or now - at > tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '|' .. whole(now))
end
return redis.call('GET', KEYS[2]) or '0'
