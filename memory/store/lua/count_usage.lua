-- KEYS, all in the slot of usage: calls counted of late, the month's sums, its days, its people by tokens,
-- the person's days, the conversation's sums, what the person's quota of today has spent.
-- ARGV: call, for how long it is known in ms, when the month expires, source, day, person, tokens for the
-- quota, how long the quota is kept in s, then fresh, cached, output and reasoning tokens.
-- Answers 1, or 0 for a call that was counted before. Begins with a write that frees, so that a full Redis
-- takes it: a reply goes in the same round trip and must not fail by it.
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now - ARGV[2]))
if redis.call('ZADD', KEYS[1], 'NX', whole(now), ARGV[1]) == 0 then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local expires_at, source, of_day = ARGV[3], ARGV[4], ARGV[5] .. '|' .. ARGV[4]
local tokens = {ARGV[9], ARGV[10], ARGV[11], ARGV[12]}
add(KEYS[2], source, tokens, expires_at)
add(KEYS[3], of_day, tokens, expires_at)
redis.call('ZINCRBY', KEYS[4], total(tokens), ARGV[6])
redis.call('EXPIREAT', KEYS[4], expires_at)
add(KEYS[5], of_day, tokens, expires_at)
add(KEYS[6], source, tokens, expires_at)
if ARGV[7] ~= '0' then
  redis.call('HINCRBY', KEYS[7], 'sum', ARGV[7])
  redis.call('EXPIRE', KEYS[7], ARGV[8])
end
return 1
