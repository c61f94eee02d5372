-- KEYS[1]: a lease by name. ARGV[1], a JSON object: `token`, `ttl_ms`. Takes the lease if it is free, and extends it
-- if the caller has it. Answers 1, or 0 if another one has it.
local request = cjson.decode(ARGV[1])
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= request.token then
  -- Written before the clock went back; its holder may be dead.
  if is_from_the_future(KEYS[1], request.ttl_ms) then redis.call('PEXPIRE', KEYS[1], request.ttl_ms) end
  return 0
end
if holder then
  redis.call('PEXPIRE', KEYS[1], request.ttl_ms)
  return 1
end
redis.call('DEL', KEYS[1]) -- a script that deletes first may write afterwards, even when Redis is full
redis.call('SET', KEYS[1], request.token, 'PX', request.ttl_ms)
return 1
