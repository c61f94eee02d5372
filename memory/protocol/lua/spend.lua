-- KEYS: one person's tokens of today. ARGV: turn, tokens, how long they are kept in s. A turn counts once,
-- with what its last run took.
local before = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return redis.call('HINCRBY', KEYS[1], 'sum', tonumber(ARGV[2]) - before)
