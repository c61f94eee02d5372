-- ARGV: update id, member, ttl s, most remembered ids, how long ids are kept in ms.
local moved_to = redis.call('HGET', META, 'moved_from')
if moved_to then return {'moved', moved_to} end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', SEEN, '-inf', '(' .. whole(now - ARGV[5]))
local held = redis.call('EXISTS', LEASE)
if redis.call('ZSCORE', SEEN, ARGV[1]) then return {'duplicate', held} end
local cut = redis.call('HMGET', META, 'cut_update', 'cut_at')
if cut[1] and tonumber(ARGV[1]) <= tonumber(cut[1]) and now - cut[2] < tonumber(ARGV[5]) then
  return {'dropped', held}
end
if redis.call('ZCARD', SEEN) >= tonumber(ARGV[4]) then return {'full', held} end
redis.call('ZADD', SEEN, whole(now), ARGV[1])
redis.call('ZADD', MAILBOX, ARGV[1], ARGV[2])
touch(ARGV[3])
return {'taken', held}
