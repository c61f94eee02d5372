-- KEYS, all of one person: turns of the last while, who was told of too many, tokens of today.
-- ARGV: turn, most turns, the while in ms, most tokens; 0 is no bound.
-- A repeat of a turn is answered as the first time: 'admitted', or 'turns' and 'tokens' for the one turn
-- that is told of the bound, and 'told' for those after it.
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then return 'admitted' end
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 'admitted' end
local most_turns, most_tokens = tonumber(ARGV[2]), tonumber(ARGV[4])
local spent = tonumber(redis.call('HGET', KEYS[3], 'sum') or 0)
if most_tokens > 0 and spent >= most_tokens then
  redis.call('HSETNX', KEYS[3], 'told', ARGV[1])
  return redis.call('HGET', KEYS[3], 'told') == ARGV[1] and 'tokens' or 'told'
end
if most_turns > 0 then
  local now = now_ms()
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now - ARGV[3]))
  -- The clock went back: what comes from later would count until it has caught up.
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. whole(now), '+inf')
  if is_from_the_future(KEYS[2], ARGV[3]) then redis.call('DEL', KEYS[2]) end
  if redis.call('ZCARD', KEYS[1]) >= most_turns then
    redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3], 'NX')
    return redis.call('GET', KEYS[2]) == ARGV[1] and 'turns' or 'told'
  end
  redis.call('ZADD', KEYS[1], whole(now), ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 'admitted'
