-- Takes a lease by name, such as that of the poller, the sweeper or a learner, if it is free; extends it if the caller
-- has it. Returns whether the caller has it. The lease of a turn is another one: `acquire` takes it.
local function hold_lease(key, token, ttl_ms)
  local taken = redis.pcall('SET', key, token, 'PX', ttl_ms, 'NX')
  if taken and not taken.err then return true end
  local holder = redis.pcall('GET', key)
  if type(holder) == 'string' and holder ~= token then
    -- Written before the clock went back; its holder may be dead.
    if is_from_the_future(key, ttl_ms) then redis.call('PEXPIRE', key, ttl_ms) end
    return false
  end
  if holder ~= token then -- it is free, or the key is damaged
    redis.call('DEL', key) -- a script that deletes first may write afterwards, even when Redis is full
    redis.call('SET', key, token)
  end
  redis.call('PEXPIRE', key, ttl_ms)
  return true
end
