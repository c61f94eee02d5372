-- KEYS[1]: the record of a job. ARGV[1], a JSON object: `fields`, its names and values in turn; `ttl_s`.
-- Answers 1 if the job is new. A job that is known keeps its fields, and its receipt is reported again: answers 0.
local request = cjson.decode(ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HDEL', KEYS[1], 'reported')
  return 0
end
redis.call('HSET', KEYS[1], unpack(request.fields))
redis.call('EXPIRE', KEYS[1], request.ttl_s)
return 1
