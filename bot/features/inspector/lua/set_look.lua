-- Uses: scope
-- ARGV[1], a JSON object: `update_id` of the button; `until`, in ms, 0 to end it; `ttl_s`.
-- Notes until when the operator may look. The newest update counts, so a repeated press brings nothing back.
local request = cjson.decode(ARGV[1])
local newest = string.match(redis.call('HGET', META, 'look') or '', '^(%d+)|')
if not newest or request.update_id > tonumber(newest) then
  redis.call('HSET', META, 'look', whole(request.update_id) .. '|' .. whole(request['until']))
  touch(request.ttl_s)
end
return 'ok'
