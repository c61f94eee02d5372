-- Uses: scope
-- ARGV[1], a JSON object: `tag` of a conversation, its lowest `epoch` that still counts here, `ttl_s`.
-- From now on nothing is written here that was learned from the conversation before that epoch.
local request = cjson.decode(ARGV[1])
local lowest = redis.call('HGET', META, 'from:' .. request.tag)
if not lowest or tonumber(lowest) < request.epoch then
  redis.call('HSET', META, 'from:' .. request.tag, whole(request.epoch))
end
touch(request.ttl_s, {META})
return 'ok'
