-- Uses: scope
-- Drops all vectors of a conversation to free memory: with some of them, search would be worse than without any. Nothing
-- here is embedded while `lexical_only` is set. Answers how many vectors there were.
local dropped = redis.call('XLEN', VEC)
redis.call('DEL', VEC)
redis.call('HSET', META, 'lexical_only', 1)
redis.call('HINCRBY', META, 'dropped_vectors', dropped)
return dropped
