-- KEYS, both of one person: the conversations in which they spoke; the last update up to which they are forgotten.
-- ARGV[1], a JSON object: `tag` of the conversation, `update_id`, `seen_ms`, for how long update ids
-- ascend.
-- Notes the newest update of the person there, and its time, as `<id>|<ms>`. Answers the second key, '0' without one.
local request, now = cjson.decode(ARGV[1]), now_ms()
local id, at = string.match(redis.call('HGET', KEYS[1], request.tag) or '', '^(%d+)|(%d+)$')
if not id or tonumber(id) < request.update_id or now - at > request.seen_ms then
  redis.call('HSET', KEYS[1], request.tag, whole(request.update_id) .. '|' .. whole(now))
end
return redis.call('GET', KEYS[2]) or '0'
