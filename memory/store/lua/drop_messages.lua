-- Uses: scope
-- ARGV[1], a JSON object: `epoch` and `erasure` version; `keep`, the first sequence to keep; `window`, how many of the
-- newest messages stay in any case.
-- Drops older messages and their vectors to free memory. It drops whole nodes of the stream, because only these free
-- memory. Answers how many messages and vectors were dropped.
local request = cjson.decode(ARGV[1])
local epoch, erasure = versions()
local window = redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', request.window)
if epoch ~= request.epoch or erasure ~= request.erasure or #window < request.window then return {0, 0} end
local first_of_window = tonumber(string.match(window[#window][1], '^%d+'))
local keep = whole(math.min(request.keep, first_of_window))
local messages = redis.call('XTRIM', LOG, 'MINID', '~', keep)
local vectors = redis.call('XTRIM', VEC, 'MINID', '~', keep)
if messages > 0 then redis.call('HINCRBY', META, 'dropped_messages', messages) end
if vectors > 0 then redis.call('HINCRBY', META, 'dropped_vectors', vectors) end
return {messages, vectors}
