-- KEYS[1]: a sorted set by due time. ARGV[1], a JSON object: `member`, its `score`, and its `next` score, absent if the
-- member goes. Of several processes that read the same score, one gets 1 and the others 0.
local request = cjson.decode(ARGV[1])
local score = redis.call('ZSCORE', KEYS[1], request.member)
if not score or tonumber(score) ~= tonumber(request.score) then return 0 end
if not request.next then return redis.call('ZREM', KEYS[1], request.member) end
redis.call('ZADD', KEYS[1], request.next, request.member)
return 1
