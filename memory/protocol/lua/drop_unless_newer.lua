-- KEYS: a hash. ARGV: field, stamp. Removes the field only if nobody stamped it anew.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0
