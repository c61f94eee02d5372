-- KEYS, all in the slot of usage: the month's people by tokens; then sums to drop: a person's days, and conversations.
-- ARGV[1], a JSON object: `person`; `nobody`, the id that gets their tokens. Sums of the whole bot stay. Safe to repeat.
local request = cjson.decode(ARGV[1])
local tokens = redis.call('ZSCORE', KEYS[1], request.person)
if tokens then
  redis.call('ZREM', KEYS[1], request.person)
  redis.call('ZINCRBY', KEYS[1], tokens, request.nobody)
end
redis.call('DEL', unpack(KEYS, 2))
