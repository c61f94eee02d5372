-- KEYS, all in the slot of usage: a person's admitted turns, who was told of too many, what today's answers
-- have spent.
-- ARGV: turn, most turns, the while in ms, most tokens, how long turns are known in ms; 0 is no bound.
-- A repeat of a turn is answered as the first time: 'admitted', or 'turns' and 'tokens' for the one turn
-- that is told of the bound, and 'told' for those after it.
local now, most_turns, most_tokens = now_ms(), tonumber(ARGV[2]), tonumber(ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now - ARGV[5]))
-- The clock went back: what comes from later would count until it has caught up.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. whole(now), '+inf')
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 'admitted' end
local spent = tonumber(redis.call('HGET', KEYS[3], 'sum') or 0)
if most_tokens > 0 and spent >= most_tokens then
  redis.call('HSETNX', KEYS[3], 'refused', ARGV[1])
  return redis.call('HGET', KEYS[3], 'refused') == ARGV[1] and 'tokens' or 'told'
end
if most_turns > 0 then
  if is_from_the_future(KEYS[2], ARGV[3]) then redis.call('DEL', KEYS[2]) end
  if redis.call('ZCOUNT', KEYS[1], '(' .. whole(now - ARGV[3]), '+inf') >= most_turns then
    redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3], 'NX')
    return redis.call('GET', KEYS[2]) == ARGV[1] and 'turns' or 'told'
  end
end
redis.call('ZADD', KEYS[1], whole(now), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 'admitted'
