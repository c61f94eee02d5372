-- Reads the next messages of a conversation and the next vectors, oldest first.
-- Keys: meta, log, vec
-- ARGV[1], a JSON object: `message` and `vector`: the newest that the caller has, 0 for none; `max`: how many
-- entries of each stream to read.
-- Answers a list: what META says of them, in the order below; the messages; the vectors.
local request = cjson.decode(ARGV[1])
local function newer(stream, known)
  return redis.call('XRANGE', stream, '(' .. known .. '-0', '+', 'COUNT', request.max)
end
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'erasure', 'vector_fingerprint', 'session', 'generation')
return {meta, newer(KEYS[2], request.message), newer(KEYS[3], request.vector)}
