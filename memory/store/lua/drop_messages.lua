-- Uses: scope
-- ARGV: epoch, erasure version, first sequence to keep, how many of the newest messages stay in any case.
-- Drops older messages and their vectors to free memory. It drops whole nodes of the stream, because only these free
-- memory. Answers how many messages and vectors were dropped.
local epoch, erasure = versions()
local window = redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', ARGV[4])
if epoch ~= ARGV[1] or erasure ~= ARGV[2] or #window < tonumber(ARGV[4]) then return {0, 0} end
local first_of_window = tonumber(string.match(window[#window][1], '^%d+'))
local keep = whole(math.min(tonumber(ARGV[3]), first_of_window))
local messages = redis.call('XTRIM', LOG, 'MINID', '~', keep)
local vectors = redis.call('XTRIM', VEC, 'MINID', '~', keep)
if messages > 0 then redis.call('HINCRBY', META, 'dropped_messages', messages) end
if vectors > 0 then redis.call('HINCRBY', META, 'dropped_vectors', vectors) end
return {messages, vectors}
