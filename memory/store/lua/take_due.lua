-- KEYS[1]: a sorted set by due time. ARGV[1], a JSON object: `member`, its `score`. Removes the member unless its
-- score changed meanwhile. Answers 1 if it was removed, otherwise 0.
local request = cjson.decode(ARGV[1])
local score = redis.call('ZSCORE', KEYS[1], request.member)
if not score or tonumber(score) ~= tonumber(request.score) then return 0 end
return redis.call('ZREM', KEYS[1], request.member)
