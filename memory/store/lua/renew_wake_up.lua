-- KEYS[1]: a ready queue. ARGV[1], a JSON object: `group`, `consumer`, `entry`. Resets the idle time of a wake-up
-- while its turn runs, so that nobody reclaims it. Answers 1, or 0 if another consumer has it.
local request = cjson.decode(ARGV[1])
local pending = redis.call('XPENDING', KEYS[1], request.group, request.entry, request.entry, 1)[1]
if not pending or pending[2] ~= request.consumer then return 0 end
redis.call('XCLAIM', KEYS[1], request.group, request.consumer, 0, request.entry, 'JUSTID')
return 1
