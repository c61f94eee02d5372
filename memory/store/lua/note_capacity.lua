-- KEYS[1]: what was dropped and reported. ARGV[1], a JSON object: `set`, fields and their new values; `grow`, fields
-- and by how much they grow. Deletes first, so that Redis carries it out even when it is full.
local request = cjson.decode(ARGV[1])
redis.call('HDEL', KEYS[1], '')
for field, value in pairs(request.set) do redis.call('HSET', KEYS[1], field, value) end
for field, growth in pairs(request.grow) do redis.call('HINCRBY', KEYS[1], field, growth) end
return 'ok'
