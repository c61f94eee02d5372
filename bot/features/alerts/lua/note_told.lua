-- KEYS[1]: what operators were told. ARGV[1], a JSON object: fields and their new values.
-- Deletes first, so that Redis carries it out even when it is full.
redis.call('HDEL', KEYS[1], '')
for field, value in pairs(cjson.decode(ARGV[1])) do redis.call('HSET', KEYS[1], field, value) end
return 'ok'
