-- KEYS[1]: a sorted set by due time. ARGV[1], a JSON object: `now`, the `next` time, `max`.
-- Gives members that are due to one caller, the oldest first: they are due again at `next`. Answers a list.
local request = cjson.decode(ARGV[1])
local late = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', request.now, 'LIMIT', 0, request.max)
for _, member in ipairs(late) do redis.call('ZADD', KEYS[1], request.next, member) end
return late
