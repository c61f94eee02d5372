-- KEYS: a stream of bells. ARGV: group, consumer, entry, delivery count. Only while it is still ours.
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)[1]
if not pending or pending[2] ~= ARGV[2] or pending[4] ~= tonumber(ARGV[4]) then return 0 end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
return redis.call('XDEL', KEYS[1], ARGV[3])
