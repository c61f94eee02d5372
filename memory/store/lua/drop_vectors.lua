-- Uses: scope
-- Drops all vectors of a conversation to free memory, because search with some of the vectors would be worse than
-- without any. While `lexical_only` is set, no messages are embedded here. Returns the number of dropped vectors.
local dropped = redis.call('XLEN', VEC)
redis.call('DEL', VEC)
redis.call('HDEL', META, 'expiring')
redis.call('HSET', META, 'lexical_only', 1)
redis.call('HINCRBY', META, 'dropped_vectors', dropped)
return dropped
