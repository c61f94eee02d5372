-- Uses: scope
-- ARGV[1], a JSON object: `update_id` of the button; `until`, in ms, 0 to end it; `ttl_s`.
-- Notes until when the operator may look. The newest update counts, so a repeated press brings nothing back.
local request = cjson.decode(ARGV[1])
local look, noted_at = unpack(redis.call('HMGET', META, 'look', 'look_at'))
if request.update_id > tonumber(string.match(look or '', '^%d+') or '-inf') or noted_at and is_long_ago(noted_at) then
  redis.call('HSET', META, 'look', whole(request.update_id) .. '|' .. whole(request['until']), 'look_at', whole(now_ms()))
  touch(request.ttl_s)
end
return 'ok'
