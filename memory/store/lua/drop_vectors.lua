-- Uses: scope
-- Gives up all vectors of a conversation for want of room: with some of them its search would be worse
-- than by words alone. Nothing here is embedded until it is let. Answers how many there were.
local dropped = redis.call('XLEN', VEC)
redis.call('DEL', VEC)
redis.call('HSET', META, 'lexical_only', 1)
redis.call('HINCRBY', META, 'dropped_vectors', dropped)
return dropped
